"""Prints what the installed e2b SDK sends to the control plane, one line for each thing, sorted:
its version, each route with its query, header and body fields, and the texts by which it
tells answers of the data plane apart. The repository keeps what was printed last
(internal/serve/httpapi/e2b/testdata/wire.txt); a difference is news."""

import dataclasses, importlib, inspect, pkgutil, re, sys

import e2b.api.client.api as api
import e2b.api.client.models as models
from e2b import exceptions
from e2b.api.metadata import package_version


def model(annotation):
    """The model that a field's annotation names, or None."""
    for name in re.findall(r"[A-Z]\w+", str(annotation)):
        found = getattr(models, name, None)
        if found is not None and hasattr(found, "to_dict"):
            return found
    return None


def fields(of, below=""):
    """The names on the wire of a model's fields, with those of the models in it."""
    text = inspect.getsource(of.to_dict)
    names = set(re.findall(r'field_dict\["(\w+)"\]', text)) | set(re.findall(r'^\s+"(\w+)": ', text, re.M))
    for field in of.__attrs_attrs__:
        inner = model(field.type)
        wire = next((n for n in names if n.lower() == field.name.replace("_", "").lower() or n == field.name), None)
        if inner is None or wire is None:
            continue
        yield from fields(inner, below + wire + ".")
    yield from (below + name for name in names)


def routes():
    for found in pkgutil.walk_packages(api.__path__, api.__name__ + "."):
        if found.ispkg:
            continue
        make = importlib.import_module(found.name)._get_kwargs
        text = inspect.getsource(make)
        method = re.search(r'"method": "(\w+)"', text).group(1).upper()
        route = method + " " + re.sub(r"\{\w+\}", "{}", re.search(r'"url": f?"([^"]+)"', text).group(1))
        yield "route " + route
        for name in re.findall(r'params\["([^"]+)"\] =', text):
            yield f"query {route} {name}"
        for name in re.findall(r'headers\["([^"]+)"\]', text):
            if name != "Content-Type":
                yield f"header {route} {name}"
        body = inspect.signature(make).parameters.get("body")
        if body is not None and hasattr(body.annotation, "to_dict"):
            for name in fields(body.annotation):
                yield f"body {route} {name}"


def texts():
    for name, value in vars(exceptions).items():
        if name.endswith("_MESSAGE") and isinstance(value, str):
            yield f"text {name} {value}"
    for name, value in vars(exceptions).items():
        if inspect.isclass(value) and isinstance(vars(value).get("code"), str):
            yield f"code {name} {value.code}"


def main():
    print("version", package_version)
    for line in sorted(set(routes()) | set(texts())):
        print(line)


if __name__ == "__main__":
    main()
