package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// keptTools is the folder in the store where fetched artifacts stay for later
// builds, each with its origin beside it.
const keptTools = ".tools"

// bringAll makes the archives that the scripts wait for: of the packages of Python, if the
// layout has them, and of the tools.
func (b *debianBuild) bringAll(ctx context.Context, pins []pin) error {
	kept := filepath.Join(b.store.dir, keptTools)
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return diskFault(err, b.store.dir)
	}
	if b.layout.wheels {
		wheels, err := wheelsFor(b.distribution.codename, runtime.GOARCH)
		if err == nil {
			err = b.fetchMissing(ctx, slices.Concat(wheels, pins), kept)
		}
		if err == nil {
			err = b.noteArtifacts(ctx, wheels, kept)
		}
		if err == nil {
			err = b.archive(ctx, wheels, kept, "", b.wheelsFile)
		}
		if err != nil {
			return err
		}
	}
	return b.bringTools(ctx, pins, kept)
}

// bringTools brings all tools, and makes of them the archive that customize.sh
// waits for and unpacks. It leaves what it fetched in the store.
func (b *debianBuild) bringTools(ctx context.Context, pins []pin, kept string) error {
	if err := b.fetchMissing(ctx, pins, kept); err != nil {
		return err
	}
	if err := b.noteArtifacts(ctx, pins, kept); err != nil {
		return err
	}
	more := ""
	if library, ok := goLibraryOf(pins, kept); ok {
		if err := b.compileLibrary(ctx, library, kept); err != nil {
			return err
		}
		more = library.path
	}
	return b.archive(ctx, pins, kept, more, b.toolsFile)
}

// noteArtifacts verifies what was kept, and puts it on the template's ledger.
func (b *debianBuild) noteArtifacts(ctx context.Context, pins []pin, kept string) error {
	for _, p := range pins {
		path := filepath.Join(kept, p.File)
		sum, err := p.verify(ctx, path)
		if err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "%s cannot be used", p.File)
		}
		origin, err := readOrigin(path)
		if err != nil || origin.SHA256 != sum {
			return fault.Wrap(fault.ErrUnavailable, err, "where %s came from is not known: remove it, and build again", path)
		}
		b.tools = append(b.tools, Tool{
			Name: p.tool, Version: p.Version, Ecosystem: string(p.Ecosystem), Package: p.Name, File: p.File,
			SHA256: sum, Source: origin.URL, Run: origin.Run, Record: origin.Record,
		})
	}
	return nil
}

// archive makes of artifacts, and of the archive more, the one that a script waits for.
func (b *debianBuild) archive(ctx context.Context, pins []pin, kept, more, target string) error {
	b.reportStep(Progress{Step: "tools", Detail: "packing"})
	part := target + ".part"
	if err := packTools(ctx, pins, kept, more, part); err != nil {
		return err
	}
	if err := os.Rename(part, target); err != nil {
		return diskFault(err, b.store.dir)
	}
	return nil
}

// fetchMissing fetches the artifacts that are not kept, or not whole.
func (b *debianBuild) fetchMissing(ctx context.Context, pins []pin, kept string) error {
	var missing []Artifact
	for _, p := range pins {
		path := filepath.Join(kept, p.File)
		sum, err := p.verify(ctx, path)
		if origin, oerr := readOrigin(path); err != nil || oerr != nil || origin.SHA256 != sum {
			missing = append(missing, p.Artifact)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if b.store.opt.Fetcher == nil {
		return fault.New(fault.ErrUnavailable, "the tools of the template %s come through the gateway: cofferdam template build %s fetches them", b.layout.name, b.layout.name)
	}
	b.reportStep(Progress{Step: "tools", Detail: fmt.Sprintf("fetching %s through the gateway", text.Count(len(missing), "file", "files"))})
	dir := filepath.Join(b.place, "fetched")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return diskFault(err, b.store.dir)
	}
	origins, err := b.store.opt.Fetcher.Fetch(ctx, b.layout.name, missing, dir, b.reportStep)
	if err != nil {
		return fmt.Errorf("the tools of the template %s: %w", b.layout.name, err)
	}
	for i, a := range missing {
		if err := keepArtifact(ctx, a, origins[i], filepath.Join(dir, a.File), filepath.Join(kept, a.File)); err != nil {
			return err
		}
	}
	return nil
}

// keepArtifact verifies a fetched artifact and gives it its place in the store.
func keepArtifact(ctx context.Context, a Artifact, origin Origin, from, to string) error {
	sum, err := a.verify(ctx, from)
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "what was fetched as %s %s is not the pinned file", a.Name, a.Version)
	}
	if sum != origin.SHA256 {
		return fault.New(fault.ErrUnavailable, "what was fetched as %s is not what the log has of it", a.File)
	}
	raw, err := json.Marshal(origin)
	if err == nil {
		err = errors.Join(atomicfile.Replace(to+originSuffix, raw, 0o644), os.Rename(from, to))
	}
	if err != nil {
		return diskFault(err, to)
	}
	return nil
}

const originSuffix = ".origin.json"

func readOrigin(path string) (Origin, error) {
	var o Origin
	raw, err := os.ReadFile(path + originSuffix)
	if err != nil {
		return o, err
	}
	err = json.Unmarshal(raw, &o)
	return o, err
}

// inWheel is a file of a wheel that was fetched for a template, by the tool
// whose wheel it is.
func inWheel(dir, tool, name string) ([]byte, error) {
	for _, p := range pinned(runtime.GOARCH) {
		if p.tool == tool && strings.HasSuffix(p.File, ".whl") {
			return readMember(filepath.Join(dir, p.File), name)
		}
	}
	return nil, fault.New(fault.ErrNotFound, "no %s is pinned for %s", tool, runtime.GOARCH)
}

// ToolFile is a file of a tool's wheel; dir is the one that a Fetcher filled.
func ToolFile(dir, tool, path string) ([]byte, error) { return inWheel(dir, tool, path) }

// ToolFile is the same of what earlier builds fetched.
func (s *Store) ToolFile(tool, path string) ([]byte, error) {
	return inWheel(filepath.Join(s.dir, keptTools), tool, path)
}
