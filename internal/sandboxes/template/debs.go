package template

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
)

// keptDebs begins the names of the folders in the store that have the
// distribution's packages of a template's last build, as they came from the mirror,
// each with its digest in the file debSums. A build takes what any of them has.
// That a package is the one that the mirror's signed lists have now,
// customize.sh looks up: apt compares names and sizes only.
const (
	keptDebs = ".debs-"
	debSums  = "SHA256SUMS"
)

// setOutDebs brings the packages of earlier builds into a folder of this build's.
// Nothing depends on them: what is damaged or can't be had is fetched again.
func (b *debianBuild) setOutDebs(ctx context.Context) error {
	b.debs = filepath.Join(b.place, "debs")
	if err := os.Mkdir(b.debs, 0o700); err != nil {
		return diskFault(err, b.store.dir)
	}
	folders, _ := filepath.Glob(filepath.Join(b.store.dir, keptDebs+"*"))
	for _, folder := range folders {
		for name, want := range readSums(filepath.Join(folder, debSums)) {
			path := filepath.Join(folder, name)
			if sum, _, err := digestFile(ctx, path); err == nil && sum == want {
				_ = os.Link(path, filepath.Join(b.debs, name)) // another folder may have had it
			}
		}
	}
	return ctx.Err()
}

// keepDebs keeps the packages that are in the template, and forgets all others of
// its last build.
func (b *debianBuild) keepDebs(ctx context.Context) error {
	if b.debs == "" {
		return nil
	}
	var sums strings.Builder
	entries, err := os.ReadDir(b.debs)
	if err != nil {
		return err
	}
	wanted := debNames(b.readRows("packages.tsv"))
	for _, e := range entries {
		path := filepath.Join(b.debs, e.Name())
		if !e.Type().IsRegular() || !slices.Contains(wanted, e.Name()) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		sum, _, err := digestFile(ctx, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", strings.TrimPrefix(sum, "sha256:"), e.Name())
	}
	if err := atomicfile.Replace(filepath.Join(b.debs, debSums), []byte(sums.String()), 0o644); err != nil {
		return err
	}
	kept := filepath.Join(b.store.dir, keptDebs+b.layout.name)
	return errors.Join(os.RemoveAll(kept), os.Rename(b.debs, kept))
}

// dropDebs forgets what is kept for all templates.
func (b *debianBuild) dropDebs() {
	folders, _ := filepath.Glob(filepath.Join(b.store.dir, keptDebs+"*"))
	for _, folder := range folders {
		_ = os.RemoveAll(folder) // a later build verifies what is still there
	}
}

// debNames are the names that apt gives to the files of installed packages.
func debNames(packages [][]string) []string {
	var names []string
	for _, row := range packages {
		names = append(names, fmt.Sprintf("%s_%s_%s.deb", row[0], strings.ReplaceAll(row[1], ":", "%3a"), row[2]))
	}
	return names
}

// readSums reads a list of digests by file name; only plain names of packages count.
func readSums(path string) map[string]string {
	sums := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return sums
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if ok && strings.HasSuffix(name, ".deb") && filepath.Base(name) == name {
			sums[name] = "sha256:" + sum
		}
	}
	return sums
}
