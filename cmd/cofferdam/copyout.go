package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// fetch copies a file or a directory out of the sandbox. Everything that the
// sandbox says is taken for what an enemy would say.
func (c *copying) fetch(ctx context.Context, source, target string) error {
	if target == "-" {
		content, err := c.client.ReadFile(ctx, c.box, c.insideFile(source))
		if err != nil {
			return err
		}
		defer func() { _ = content.Close() }()
		_, err = io.Copy(os.Stdout, content)
		return err
	}
	if source = strings.TrimRight(source, "/"); source == "" {
		source = "/"
	}
	info, err := c.client.StatFile(ctx, c.box, c.insideFile(source))
	if err != nil {
		return err
	}
	into := strings.HasSuffix(target, "/")
	switch kind, err := kindNamed(target); {
	case err == nil:
		into = kind == hostpath.Dir
	case into || !errors.Is(err, fs.ErrNotExist):
		return fault.Invalid("the target %s %s", target, because(err))
	}
	if into {
		name, err := nameInside(source, info)
		if err != nil {
			return err
		}
		target = filepath.Join(target, name)
	}
	switch info.Kind {
	case "file":
		return c.fetchOne(ctx, source, info, target)
	case "dir":
		return c.fetchTree(ctx, info.Path, target)
	case "symlink":
		return fault.Invalid("%s is a link in the sandbox; copy what it leads to, %q", source, info.Target)
	}
	return fault.Invalid("%s is neither a file nor a directory in the sandbox", source)
}

// nameInside is the last element of a path of the sandbox as the person wrote it;
// where that has none, as the sandbox claims it.
func nameInside(source string, info api.FileInfo) (string, error) {
	for _, candidate := range []string{path.Base(path.Clean(source)), path.Base(path.Clean(info.Path))} {
		if candidate != "." && candidate != ".." && candidate != "/" && candidate != "~" && oneName(candidate) {
			return candidate, nil
		}
	}
	return "", fault.Invalid("%s has no name of its own; give the target's whole path", source)
}

// oneName reports whether a name is one element of a path and nothing else.
func oneName(name string) bool {
	return filepath.IsLocal(name) && !strings.ContainsAny(name, "/\x00")
}

func (c *copying) fetchOne(ctx context.Context, source string, info api.FileInfo, target string) error {
	dir, name := filepath.Split(filepath.Clean(target))
	if dir == "" {
		dir = "."
	}
	root, err := rootNamed(dir, false)
	if err != nil {
		return fault.Invalid("the target's directory %s %s", dir, because(err))
	}
	defer func() { _ = root.Close() }()
	if err := c.fetchFile(ctx, root, source, name, info.Mode); err != nil {
		return err
	}
	c.pointOut(ctx, dir, []string{name}, nil)
	return nil
}

// fetchFile writes a file of the sandbox as a new one below root and then puts it
// in its place, so that there is the whole of it or what was there before.
func (c *copying) fetchFile(ctx context.Context, root *os.Root, source, name string, mode uint32) (err error) {
	content, err := c.client.ReadFile(ctx, c.box, c.insideFile(source))
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	permissions := fs.FileMode(0o666)
	if mode&0o100 != 0 {
		permissions = 0o777
	}
	fresh := path.Join(path.Dir(name), fmt.Sprintf(".cofferdam-%d-%s", os.Getpid(), shortened(path.Base(name))))
	file, err := root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, permissions)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(fresh)
		}
	}()
	written, err := io.Copy(file, io.LimitReader(content, c.limit+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if c.limit -= written; c.limit < 0 {
		return fault.Invalid("what is in the sandbox is more than --max-bytes; %s and what follows is not copied", source)
	}
	return root.Rename(fresh, name)
}

// shortened leaves room in a file's name for what is put before it.
func shortened(name string) string {
	const most = 200
	return name[:min(len(name), most)]
}

// remoteTree is a directory as the sandbox tells of it, by paths relative to it.
type remoteTree struct {
	dirs  map[string]bool
	files map[string]uint32 // their modes
	links map[string]string // their targets
}

func (c *copying) fetchTree(ctx context.Context, source, target string) error {
	listed, err := c.listTree(ctx, source)
	if err != nil {
		return err
	}
	root, err := rootNamed(target, true)
	if err != nil {
		return fault.Invalid("the target %s %s", target, because(err))
	}
	defer func() { _ = root.Close() }()
	for _, dir := range slices.Sorted(maps.Keys(listed.dirs)) {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			c.addFailure("the directory %s was not made: %s", ui.PrintableName(dir), because(err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(listed.files)) {
		err := c.fetchFile(ctx, root, path.Join(source, name), name, listed.files[name])
		switch {
		case ctx.Err() != nil || c.limit < 0:
			return err
		case err != nil:
			c.addFailure("%s was not copied: %s", ui.PrintableName(name), err)
		}
	}
	c.makeLinks(root, listed)
	c.pointOut(ctx, target, slices.Concat(slices.Collect(maps.Keys(listed.files)), slices.Collect(maps.Keys(listed.links))), slices.Collect(maps.Keys(listed.dirs)))
	return nil
}

// listTree reads the whole of a directory. A name that is none, or that is not below
// the directory, is pointed out and left out.
func (c *copying) listTree(ctx context.Context, source string) (remoteTree, error) {
	t := remoteTree{dirs: map[string]bool{".": true}, files: map[string]uint32{}, links: map[string]string{}}
	entries := 0
	for entry, err := range c.client.ListFiles(ctx, c.box, c.insideFile(source), copyDepth) {
		if err != nil {
			return t, err
		}
		if entries++; entries > copyEntries {
			return t, fault.Invalid("%s has more than %d files; copy it in parts, or pack it first", source, copyEntries)
		}
		name, ok := strings.CutPrefix(entry.Path, strings.TrimSuffix(source, "/")+"/")
		if !ok || !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsRune(name, 0) {
			c.addFailure("left out: the sandbox names a file %q, which is not in %s", entry.Path, source)
			continue
		}
		if strings.ContainsRune(name+entry.Target, utf8.RuneError) {
			c.addFailure("left out: the name of %s, or what it leads to, has U+FFFD, which stands for bytes that are no UTF-8; rename it inside, or pack it there", ui.PrintableName(name))
			continue
		}
		switch entry.Kind {
		case "dir":
			t.dirs[name] = true
		case "file":
			t.files[name] = entry.Mode
		case "symlink":
			t.links[name] = entry.Target
		default:
			c.addNote("left out: %s is no regular file", ui.PrintableName(name))
		}
		if strings.Count(name, "/") == copyDepth-1 && entry.Kind == "dir" {
			c.addFailure("left out: what is below %s; it is too deep", ui.PrintableName(name))
		}
	}
	return t, nil
}

// makeLinks makes those symbolic links that lead into the copy. They come last, so
// that nothing was written through one.
func (c *copying) makeLinks(root *os.Root, t remoteTree) {
	for _, name := range slices.Sorted(maps.Keys(t.links)) {
		target := t.links[name]
		if !t.dirs[path.Dir(name)] || !leadsInside(name, target) || !noLinks(root, path.Dir(name)) {
			c.addNote("left out: the link %s leads out of what is copied, to %q", ui.PrintableName(name), target)
			continue
		}
		if there, err := root.Lstat(name); err == nil && there.Mode()&fs.ModeSymlink != 0 {
			_ = root.Remove(name) // Symlink below says it, if that failed
		}
		if err := root.Symlink(target, name); err != nil {
			c.addFailure("the link %s was not made: %s", ui.PrintableName(name), because(err))
		}
	}
}

// noLinks reports whether a directory and those above it are no links: there may
// have been some before, and a ".." climbs from where they lead.
func noLinks(root *os.Root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// leadsInside reports whether a link below the copy's root leads to a place below
// it, whatever other links there are. A ".." is understood only at its beginning,
// where it climbs from a directory that is known to be none itself: after a name,
// which may be another link, nobody knows what it climbs from.
func leadsInside(name, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.ContainsRune(target, 0) {
		return false
	}
	depth := strings.Count(name, "/")
	climbing := true
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part != "..":
			climbing = climbing && (part == "" || part == ".")
		case !climbing || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

// decidingBelow are the paths below a directory that the settings of it, or of one above it,
// name; relative.
func decidingBelow(dir string) []string {
	if dir = resolvedFromHere(dir); dir == "" {
		return nil
	}
	return pathsBelow(dir, project.Deciding(dir))
}

// resolvedFromHere is a directory's name without links; "" if there is no current directory.
func resolvedFromHere(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	return resolved(dir)
}
