"""A run of a study that displays itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longfat.presentation.displayed import Displayed, altair_chart
from longfat.presentation.text_table import TextTable
from longfat.results.run import RunResult

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True, repr=False)
class Run(RunResult, Displayed):
    """The result of a run: cells with intervals, and claims with verdicts.

    Its text is a table of means with their 95 % confidence intervals and the verdicts; in a notebook a chart
    is added. `interrupted` is true if Ctrl-C stopped the run: the finished trials are there, and running the
    study again resumes it.
    """

    interrupted: bool = False

    @property
    def title(self) -> str:
        """The study's name with the numbers of cells and trials."""
        trials = sum(cell.tried for cell in self.cells)
        counts = [f"{len(self.cells)} cells", f"{trials} trials"]
        counts += ["interrupted"] if self.interrupted else []
        return f"{self.study.title}: {', '.join(counts)}"

    @property
    def metrics(self) -> list[str]:
        """The metrics that were measured, the most important first, with their units (`goodput_bps`)."""
        from longfat.analysis import grid

        return grid.measured(self.cells)

    def table(self, *metrics: str) -> TextTable:
        """Returns a row for each cell: swept keys, protocol, and metrics as mean ± half of the 95 % CI.

        Args:
            *metrics: Names with or without unit ("goodput", "rtt_p99"); by default the study's.

        Raises:
            ValueError: for an unknown metric.
        """
        from longfat.analysis import grid
        from longfat.presentation.run import layouts
        from longfat.presentation.run.columns import Column

        chosen = list(map(self.study.column, metrics)) or grid.shown(self.study, self.cells)
        columns = [Column.of(metric, self.cells) for metric in chosen]
        several = len(grid.worlds(self.cells)) > 1
        world = ["world"] if several else []
        head = [*world, *layouts.key_titles(self.study), "Protocol", *(column.title for column in columns)]
        rows = [
            [
                *([result.cell.world] if several else []),
                *layouts.place(self.study, result.cell),
                layouts.marked_name(self.study, result),
                *(column.measured(result) for column in columns),
            ]
            for result in self.cells
        ]
        return TextTable(head, rows, right=range(len(head) - len(columns), len(head)))

    def remarks(self) -> Sequence[str]:
        """Returns the verdicts, failures and cautions."""
        from longfat.presentation.run import notes, verdicts

        claims = map(verdicts.line, self.claims)
        return [*claims, *notes.failures(self.cells), *notes.cautions(self.study, self.cells)]

    def drawing(self, metric: str | None = None) -> dict[str, Any] | None:
        """Returns the chart of a metric over the sweep as Vega-Lite; None if nothing was measured."""
        from longfat.analysis import grid
        from longfat.presentation.run.charts import lines, matrix

        name = grid.shown(self.study, self.cells)[0] if metric is None else self.study.column(metric)
        if name not in grid.measured(self.cells):
            return None
        kind: Any = matrix if matrix.suits(self, name) else lines
        spec: dict[str, Any] = kind.chart(self, name)
        return spec

    def chart(self, metric: str | None = None) -> Any:
        """Returns a metric over the sweep as an Altair chart: means, 95 % confidence intervals and theory.

        Args:
            metric: Name with or without unit ("goodput"); by default the study's main metric.

        Raises:
            ValueError: for an unknown metric, and for one that was not measured.
        """
        drawn = self.drawing(metric)
        if drawn is None:
            raise ValueError(
                f"this run measured no {metric or 'metric'}; measured: {', '.join(self.metrics)}"
            )
        return altair_chart(drawn)

    def flows_chart(self) -> Any:
        """Returns the distribution of flow completion times as an Altair chart.

        Raises:
            ValueError: with too few completed flows.
        """
        from longfat.presentation.run.charts import flows

        rows = flows.rows(self)
        return altair_chart(flows.chart(self, rows) if rows else None)

    def to_polars(self) -> polars.DataFrame:
        """Returns one row for each trial (`RunResult.to_polars`)."""
        return RunResult.to_polars(self)

    def __repr__(self) -> str:
        return Displayed.__repr__(self)
