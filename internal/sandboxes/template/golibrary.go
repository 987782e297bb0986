package template

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed" // the script that compiles the library
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

//go:embed golibrary.sh
var goLibraryScript []byte

// goLibrary is an archive of Go's compiled standard library, made of the pinned Go.
// Compiling takes most of a build, and its result is the same each time: it is kept
// in the store under a name that says what it was made of.
type goLibrary struct {
	pin  pin
	path string // in the store
}

// goLibraryOf is the library for the Go among the pins; false if there is none.
func goLibraryOf(pins []pin, kept string) (goLibrary, bool) {
	i := slices.IndexFunc(pins, func(p pin) bool { return p.tool == "go" })
	if i < 0 {
		return goLibrary{}, false
	}
	h := sha256.New()
	_, _ = h.Write(goLibraryScript)
	_, _ = fmt.Fprintf(h, "%v %s", pins[i].Artifact, runtime.GOARCH)
	return goLibrary{pins[i], filepath.Join(kept, fmt.Sprintf("go-library-%x.tar", h.Sum(nil)[:8]))}, true
}

const sumSuffix = ".sha256"

// isWhole reports whether the archive is there as it was made.
func (g goLibrary) isWhole(ctx context.Context) bool {
	want, err := os.ReadFile(g.path + sumSuffix)
	if err != nil {
		return false
	}
	sum, _, err := digestFile(ctx, g.path)
	return err == nil && sum == string(want)
}

// compileLibrary makes the archive, if it is not kept from an earlier build.
func (b *debianBuild) compileLibrary(ctx context.Context, g goLibrary, kept string) error {
	if g.isWhole(ctx) {
		return nil
	}
	b.reportStep(Progress{Step: "tools", Detail: "compiling Go's library, once; later builds have it"})
	tree, archive, script := filepath.Join(b.place, "go"), filepath.Join(b.place, "go.tar"), filepath.Join(b.place, "golibrary.sh")
	if err := errors.Join(os.Mkdir(tree, 0o755), os.WriteFile(script, goLibraryScript, 0o755)); err != nil { //nolint:gosec // as in the template
		return diskFault(err, b.store.dir)
	}
	if err := packTools(ctx, []pin{g.pin}, kept, "", archive); err != nil {
		return err
	}
	c := toolCommand{path: "/bin/sh", args: []string{script, tree, archive}, dir: b.place, env: b.scriptEnv()}
	if os.Geteuid() != 0 {
		c.path, c.args = "unshare", append([]string{"--user", "--map-root-user", "--mount", "/bin/sh"}, c.args...)
	}
	if err := b.runTool(ctx, c); err != nil {
		return fmt.Errorf("compile Go's library: %w", err)
	}
	if err := packTree(tree, localLib+"go/pkg/linux_"+runtime.GOARCH, g.path+".part"); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "Go's compiled library can't be packed")
	}
	sum, _, err := digestFile(ctx, g.path+".part")
	if err == nil {
		err = errors.Join(atomicfile.Replace(g.path+sumSuffix, []byte(sum), 0o644), syncFile(g.path+".part"), os.Rename(g.path+".part", g.path))
	}
	if err != nil {
		return diskFault(err, b.store.dir)
	}
	b.forgetLibraries(kept, g.path)
	return b.store.removeTree(ctx, tree)
}

// forgetLibraries removes what other versions of Go left.
func (b *debianBuild) forgetLibraries(kept, current string) {
	old, _ := filepath.Glob(filepath.Join(kept, "go-library-*"))
	for _, path := range old {
		if path != current && path != current+sumSuffix {
			_ = os.Remove(path)
		}
	}
}

// packTree writes the regular files below a folder of a tree, as packTools does.
func packTree(tree, folder, target string) error {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(f, 1<<20)
	out := tar.NewWriter(buffered)
	files := 0
	err = filepath.WalkDir(filepath.Join(tree, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files++
		return packFile(out, tree, path)
	})
	if err == nil && files == 0 {
		err = fault.New(fault.ErrUnavailable, "it has no files")
	}
	return errors.Join(err, out.Close(), buffered.Flush(), f.Close())
}

func packFile(out *tar.Writer, tree, path string) error {
	name, err := filepath.Rel(tree, path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644, ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, info.Size())
	return err
}
