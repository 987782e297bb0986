# What a cell shows of images: those that its code shows, and those that it saves to a file,
# come as results, as clients of a code interpreter expect.
import base64
import importlib.abc
import importlib.util


class Saved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Has PIL.Image show what a cell saves, once that is imported, and where the cell's
    results are, whatever else there is to look at images with."""

    def find_spec(self, name, path=None, target=None):
        if name != "PIL.Image" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        save = module.Image.save

        def show(image, *_, **__):
            from IPython.display import display

            display(image)

        def show_saved(image, fp, *args, **kwargs):
            done = save(image, fp, *args, **kwargs)
            # Of what libraries save, such as a figure's own file, nothing is shown.
            if isinstance(fp, (str, os.PathLike)) and sys._getframe(1).f_globals.get("__name__") == "__main__":
                show(image)
            return done

        module.Image.show, module.Image.save = show, show_saved


def as_text(value):
    """Bytes of a result as its text."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
