# What a result shows beyond what IPython makes of it: frames as data, and charts as what
# they plot. A chart is {type, title, elements, ...} as clients draw it again: see chart_of.
DATA = "application/vnd.cofferdam.data+json"
CHART = "application/vnd.cofferdam.chart+json"
MOST_ROWS, MOST_POINTS = 10_000, 100_000


def add_formatters(shell):
    from IPython.core.formatters import BaseFormatter
    from traitlets import ObjectName, Unicode

    def formatter(mime, types, make):
        class Formatter(BaseFormatter):
            format_type = Unicode(mime)
            print_method = ObjectName("_repr_cofferdam_")
            _return_type = dict

            def __call__(self, thing):
                # By name, so that nothing is imported for it, and by no table: the one
                # of figures is emptied by who chooses the formats of figures.
                if any((kind.__module__, kind.__name__) in types for kind in type(thing).__mro__):
                    return quiet(make, thing)
                return None

        shell.display_formatter.formatters[mime] = Formatter(parent=shell.display_formatter)
        if mime not in shell.display_formatter.active_types:
            shell.display_formatter.active_types = [*shell.display_formatter.active_types, mime]

    formatter(DATA, [("pandas", "DataFrame"), ("pandas.core.frame", "DataFrame")], frame_of)
    formatter(CHART, [("matplotlib.figure", "Figure")], chart_of)


def quiet(make, thing):
    """What can't be read of a result is left out; the result is shown all the same."""
    try:
        return make(thing)
    except Exception:
        return None


def frame_of(frame):
    if len(frame) > MOST_ROWS or frame.size > 20 * MOST_ROWS:
        return None
    return {str(name): [plain(v) for v in frame.iloc[:, i].tolist()] for i, name in enumerate(frame.columns)}


def plain(value):
    """A value as JSON has it."""
    import datetime
    import numbers

    if value is None or isinstance(value, (bool, str)):
        return value
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        value = float(value)
        return value if value - value == 0 else None
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if type(value).__name__ in ("datetime64", "bool_", "bool"):
        return str(value) if type(value).__name__ == "datetime64" else bool(value)
    return str(value)


def chart_of(figure):
    axes = figure.get_axes()
    if not axes:
        return None
    if len(axes) == 1:
        return axes_chart(axes[0])
    return {"type": "superchart", "title": figure.get_suptitle() or None, "elements": [axes_chart(ax) for ax in axes]}


def axes_chart(ax):
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Rectangle, Wedge
    from matplotlib.text import Text

    shown = [child for child in ax._children if not isinstance(child, Text)]

    def only(*kinds):
        return bool(shown) and all(isinstance(child, kinds) for child in shown)

    chart = {"type": "unknown", "title": ax.get_title() or None, "elements": []}
    if only(Line2D) or not shown:  # axes with nothing in them have their scales all the same
        chart.update(points_chart(ax, "line", [(line.get_label(), zip(line.get_xdata(orig=True), line.get_ydata(orig=True))) for line in ax.get_lines()]))
    elif only(PathCollection):
        chart.update(points_chart(ax, "scatter", [(dots.get_label(), dots.get_offsets()) for dots in ax.collections]))
    elif only(Wedge):
        chart["type"] = "pie"
        chart["elements"] = [{"label": w.get_label(), "angle": round(float(abs(w.theta2 - w.theta1)), 4), "radius": plain(w.r)} for w in ax.patches]
    elif only(Rectangle) and ax.containers:
        chart.update(bar_chart(ax))
    elif only(PathPatch, Line2D):
        chart.update(box_chart(ax))
    return chart


def unit_of(label):
    import re

    found = re.search(r"\s\((.*?)\)|\[(.*?)\]", label or "")
    return (found.group(1) or found.group(2)) if found else None


def labels_of(ax):
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    return {"x_label": x, "y_label": y, "x_unit": unit_of(x), "y_unit": unit_of(y)}


def scale_of(axis, scale):
    from matplotlib.category import StrCategoryConverter
    from matplotlib.dates import DateConverter, _SwitchableDateConverter

    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    if isinstance(converter, (DateConverter, _SwitchableDateConverter)):
        return "datetime"
    if isinstance(converter, StrCategoryConverter):
        return "categorical"
    return scale


def points_chart(ax, kind, series):
    x_scale, y_scale = scale_of(ax.xaxis, ax.get_xscale()), scale_of(ax.yaxis, ax.get_yscale())
    elements, left = [], MOST_POINTS
    for label, points in series:
        points = [[coordinate(x, x_scale), coordinate(y, y_scale)] for x, y in points][:left]
        left -= len(points)
        elements.append({"label": str(label), "points": points})
    return {
        **labels_of(ax), "type": kind, "elements": elements, "x_scale": x_scale, "y_scale": y_scale,
        "x_ticks": [coordinate(t, x_scale) for t in ticks_of(ax.xaxis, x_scale)], "x_tick_labels": [t.get_text() for t in ax.get_xticklabels()],
        "y_ticks": [coordinate(t, y_scale) for t in ticks_of(ax.yaxis, y_scale)], "y_tick_labels": [t.get_text() for t in ax.get_yticklabels()],
    }  # fmt: skip


def ticks_of(axis, scale):
    if scale == "categorical":
        return [t.get_text() for t in axis.get_ticklabels()]
    return axis.get_ticklocs()


def coordinate(value, scale):
    """A place on an axis: a moment as text, a category by its name, anything else a number."""
    if scale == "datetime":
        import numbers

        from matplotlib.dates import num2date

        if isinstance(value, numbers.Real):
            value = num2date(value)
        value = plain(value)
        return value if isinstance(value, str) else None
    return plain(value)


def bar_chart(ax):
    elements, lying = [], False
    for group, container in enumerate(ax.containers):
        lying = getattr(container, "orientation", "vertical") == "horizontal"
        axis = ax.yaxis if lying else ax.xaxis
        names = dict(zip([round(float(t), 6) for t in axis.get_ticklocs()], [t.get_text() for t in axis.get_ticklabels()]))
        label = str(container.get_label() or "")
        for bar in container:
            middle = (bar.get_y() + bar.get_height() / 2) if lying else (bar.get_x() + bar.get_width() / 2)
            value = bar.get_width() if lying else bar.get_height()
            name = names.get(round(float(middle), 6)) or str(plain(middle))
            elements.append({"label": name, "value": plain(value), "group": f"Group {group}" if label.startswith("_") or not label else label})
    chart = {**labels_of(ax), "type": "bar", "elements": elements}
    return turned(chart) if lying else chart


def turned(chart):
    """Of what lies: what clients call x runs upwards."""
    chart["x_label"], chart["y_label"] = chart["y_label"], chart["x_label"]
    chart["x_unit"], chart["y_unit"] = chart["y_unit"], chart["x_unit"]
    return chart


def box_chart(ax):
    boxes = []
    for patch in ax.patches:
        corners = patch.get_path().vertices
        boxes.append({"x": (min(corners[:, 0]), max(corners[:, 0])), "y": (min(corners[:, 1]), max(corners[:, 1]))})
    widths, heights = ({round(float(b[of][1] - b[of][0]), 6) for b in boxes} for of in "xy")
    lying = len(widths) > 1 and len(heights) == 1
    along, across = ("x", "y") if lying else ("y", "x")
    axis = ax.yaxis if lying else ax.xaxis
    names = dict(zip([round(float(t), 6) for t in axis.get_ticklocs()], [t.get_text() for t in axis.get_ticklabels()]))
    elements = []
    for box in boxes:
        low, high = box[along]
        left, right = box[across]
        middle = round(float((left + right) / 2), 6)
        one = {"label": names.get(middle) or str(middle), "min": low, "first_quartile": low, "median": low, "third_quartile": high, "max": high, "outliers": []}
        for line in ax.lines:
            place, values = line.get_xdata(), line.get_ydata()
            if lying:
                place, values = values, place
            if not len(place) or not all(left <= p <= right for p in place):
                continue
            if line.get_linestyle() in ("None", "none", "", " ") and line.get_marker() not in ("None", None, ""):
                one["outliers"] = [plain(v) for v in values]
            elif len(values) == 2 and values[0] == values[1] and low <= values[0] <= high:
                one["median"] = values[0]
            elif len(values) == 2 and max(values) == low:
                one["min"] = min(values)
            elif len(values) == 2 and min(values) == high:
                one["max"] = max(values)
        elements.append({name: value if isinstance(value, (str, list)) else plain(value) for name, value in one.items()})
    chart = {**labels_of(ax), "type": "box_and_whisker", "elements": elements}
    return turned(chart) if lying else chart
