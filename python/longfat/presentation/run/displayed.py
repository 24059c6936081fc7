"""A run of a study that displays itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longfat.presentation.displayed import Displayed, altair_chart
from longfat.presentation.run.charts.options import Cdf, Log, Options
from longfat.presentation.text_table import TextTable
from longfat.results.run import RunResult
from longfat.system.parameters import ParameterError

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
        from longfat.presentation.run.charts.drawing import draw

        name = grid.shown(self.study, self.cells)[0] if metric is None else self.study.column(metric)
        return draw(self, name, Options()).spec if name in grid.measured(self.cells) else None

    def chart(
        self,
        metric: str | None = None,
        *,
        title: str | None = None,
        x_label: str | None = None,
        y_label: str | None = None,
        size: str | None = None,
        font: str | None = None,
        font_size: str | None = None,
        log: Log | None = None,
        y_range: str | None = None,
        cdf: Cdf | None = None,
        facet: str | None = None,
        by_host: bool = False,
        cell: Mapping[str, Any] | None = None,
        out: str | Path | None = None,
        csv: bool = False,
    ) -> Any:
        """Returns a metric over the sweep as an Altair chart: means, 95 % confidence intervals and theory.

        Args:
            metric: Metric (longfat list metrics; of flows fct, goodput or size); by default the study's main
                one.
            title: Title, "" for none; by default metric, study and a caption, or none with `size`.
            x_label: Label of the x axis, "" for none.
            y_label: Label of the y axis, "" for none.
            size: Size of the file: column (3.5in), two-column (7.16in), a width (9cm), or width and height
                (3.5x2.2in); by default plots of 620px.
            font: Font family, e.g. "Liberation Serif".
            font_size: Size of the text, e.g. "9pt"; by default 9pt, or 8pt with `size`.
            log: Logarithmic axes, or none; by default those whose values span decades.
            y_range: Range of the y axis, e.g. "10ms..14ms"; by default from 0, or that of the values if
                logarithmic.
            cdf: Cumulative distribution of the metric over trials, flows or rounds instead of means.
            facet: Swept key, or world: one small chart for each value.
            by_host: Bars for each host, next to fair shares.
            cell: Swept keys with the values to draw; by default all.
            out: Output file (.svg, .pdf, .png or .html).
            csv: Plotted values as CSV next to the file, in SI units.

        Raises:
            ValueError: for a wrong option, an unknown metric, and one that was not measured.
            OSError: if a file cannot be written.
        """
        from longfat.presentation.run.charts.drawing import draw, format_of

        if csv and out is None:
            raise ParameterError("csv", "requires {out}")
        target = None if out is None else Path(out)
        fmt = None if target is None else format_of(target)
        options = Options(
            title=title,
            x_label=x_label,
            y_label=y_label,
            size=size,
            font=font,
            font_size=font_size,
            log=log,
            y_range=y_range,
            cdf=cdf,
            facet=facet,
            by_host=by_host,
            cell=cell or {},
        )
        drawn = draw(self, metric, options)
        if target is not None and fmt is not None:
            drawn.write(target, fmt, csv=csv)
        return altair_chart(drawn.spec)

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
