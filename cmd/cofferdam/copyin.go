package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/treewalk"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// send copies a file or a directory of this machine into the sandbox.
func (c *copying) send(ctx context.Context, source, target string) error {
	if source == "-" {
		if strings.HasSuffix(target, "/") {
			return fault.Invalid("stdin has no name; give the file's whole path inside")
		}
		_, err := c.client.WriteFile(ctx, c.box, c.insideFile(target), os.Stdin)
		return err
	}
	from, err := openNamed(source)
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return fault.Invalid("the source %s is neither a file nor a directory", source)
	}
	if err != nil {
		return fault.Invalid("the source %s %s", source, because(err))
	}
	defer from.Close()
	isDir := strings.HasSuffix(target, "/")
	if !isDir {
		if isDir, err = c.dirInside(ctx, target); err != nil {
			return err
		}
	}
	if isDir {
		name, err := nameOf(source)
		if err != nil {
			return err
		}
		target = joinInside(target, name)
	}
	if from.ID.Type == hostpath.Dir {
		return c.sendTree(ctx, from, source, target)
	}
	file, err := from.Reader()
	if err != nil {
		return fault.Invalid("the source %s %s", source, because(err))
	}
	return c.sendFile(ctx, file, target)
}

// nameOf is the last element of a path of this machine.
func nameOf(source string) (string, error) {
	absolute, err := filepath.Abs(source)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", source, err)
	}
	name := filepath.Base(absolute)
	if name == "/" {
		return "", fault.Invalid("the root directory has no name; give the target's whole path")
	}
	return name, nil
}

// sendFile stores an open file, which it closes.
func (c *copying) sendFile(ctx context.Context, file *os.File, target string) error {
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file any more")
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", file.Name(), err)
	}
	to := c.insideFile(target)
	to.Mode = uint32(info.Mode().Perm())
	_, err = c.client.WriteFile(ctx, c.box, to, file)
	return err
}

// sendTree copies a directory. It is read through a root, so that no link of it
// leads out of it, and links are left out: what they lead to was not asked for.
func (c *copying) sendTree(ctx context.Context, from *hostpath.Path, source, target string) error {
	root, err := from.Root()
	if err != nil {
		return fault.Invalid("the source %s %s", source, because(err))
	}
	defer func() { _ = root.Close() }()
	sent := 0
	err = treewalk.Walk(ctx, from, ".", treewalk.Usual(), func(name string, entry fs.DirEntry, err error) error {
		shown := ui.PrintableName(path.Join(source, name))
		switch {
		case err != nil:
			c.addFailure("%s %s", shown, because(err))
			return nil
		case strings.ContainsRune(name, utf8.RuneError): // or bytes that are no UTF-8
			c.addFailure("left out: the name of %s has U+FFFD, or bytes that are no UTF-8, and can't be asked for inside; pack it", shown)
			return skipped(entry)
		case entry.IsDir():
			return c.sendDir(ctx, root, name, target)
		case entry.Type()&fs.ModeSymlink != 0:
			c.addNote("left out: %s is a link", shown)
			return nil
		case !entry.Type().IsRegular():
			c.addNote("left out: %s is no regular file", shown)
			return nil
		}
		file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			c.addFailure("%s %s", shown, because(err))
			return nil
		}
		sent++
		return c.sendFile(ctx, file, joinInside(target, name))
	})
	if bound, is := errors.AsType[*treewalk.BoundError](err); is {
		return fault.Invalid("the source %s %s; copy it in parts", source, bound.Has)
	}
	return err
}

// skipped leaves out an entry of a walk, with all that is below it.
func skipped(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// sendDir makes a directory; one that is there is fine.
func (c *copying) sendDir(ctx context.Context, root *os.Root, name, target string) error {
	to := c.insideFile(joinInside(target, name))
	if info, err := root.Stat(name); err == nil {
		to.Mode = uint32(info.Mode().Perm())
	}
	_, err := c.client.MakeDirectory(ctx, c.box, to)
	if client.StatusOf(err) == http.StatusConflict {
		isDir, serr := c.dirInside(ctx, to.Path)
		if serr != nil || isDir {
			return serr
		}
		return errors.Join(err, fault.Invalid("%s is there inside, and is no directory", to.Path))
	}
	return err
}
