"""Sequences whose items are made when they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence of known length whose class makes each item by its number.

    >>> class Squares(LazySequence[int]):
    ...     def __len__(self) -> int:
    ...         return 10
    ...     def at(self, number: int) -> int:
    ...         return number**2
    >>> Squares()[-1], Squares()[2:8:2]
    (81, [4, 16, 36])
    """

    @abstractmethod
    def at(self, number: int) -> T:
        """Returns the item of a number from 0 to the length - 1."""

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        """Returns one item, or a list of some; raises IndexError beyond the ends."""
        numbers = range(len(self))[place]
        return self.at(numbers) if isinstance(numbers, int) else [self.at(number) for number in numbers]
