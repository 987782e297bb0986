// Command release makes what is published of one commit: for each architecture an
// archive, a Debian package and a bill of materials (CycloneDX), and checksums of
// all. It builds from the commit, never from the working tree. Two releases of a
// commit by the same Go are equal, byte for byte; docs/releasing.md says how to check.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	repository := flag.String("repository", ".", "the repository")
	commit := flag.String("commit", "HEAD", "what is released")
	out := flag.String("out", "dist", "where to; files of an earlier release there are replaced")
	arches := flag.String("arch", "amd64,arm64", "for which architectures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := makeRelease(ctx, *repository, *commit, *out, strings.Split(*arches, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// makeRelease leaves the files of one commit's release in out.
func makeRelease(ctx context.Context, repository, commit, out string, arches []string) (err error) {
	out, err = filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // it is published
		return err
	}
	work, err := os.MkdirTemp("", "cofferdam-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	src, err := export(ctx, repository, commit, work)
	if err != nil {
		return err
	}
	if err := src.buildHost(ctx); err != nil {
		return err
	}
	var made []string
	for _, arch := range arches {
		files, err := src.releaseFor(ctx, arch, out)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		made = append(made, files...)
	}
	return writeChecksums(out, made)
}

// releaseFor makes one architecture's files and returns their names in out.
func (s *source) releaseFor(ctx context.Context, arch, out string) ([]string, error) {
	programs, err := s.buildPrograms(ctx, arch)
	if err != nil {
		return nil, err
	}
	materials, err := s.materials(ctx, arch, programs)
	if err != nil {
		return nil, err
	}
	bill, err := materials.encodeBill()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("cofferdam-%s-linux-%s", s.version, arch)
	if err := os.WriteFile(filepath.Join(out, name+".cdx.json"), bill, 0o644); err != nil { //nolint:gosec // it is published
		return nil, err
	}
	tree, err := s.stageFiles(ctx, arch, "/usr/local", materials, bill)
	if err != nil {
		return nil, err
	}
	if err := writeArchive(filepath.Join(out, name+".tar.gz"), filepath.Join(tree, "usr", "local"), name, s.date); err != nil {
		return nil, err
	}
	tree, err = s.stageFiles(ctx, arch, "/usr", materials, bill)
	if err != nil {
		return nil, err
	}
	deb := fmt.Sprintf("cofferdam_%s_%s.deb", debianVersion(s.version, s.date), arch)
	if err := s.debian(ctx, arch, tree, filepath.Join(out, deb)); err != nil {
		return nil, err
	}
	return []string{name + ".cdx.json", name + ".tar.gz", deb}, nil
}
