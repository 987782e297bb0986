package npm

import (
	"crypto/sha256"
	"io"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/archive"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// maxPackageJSON bounds a package.json; the largest real ones have some
// hundred kilobytes.
const maxPackageJSON = 4 << 20

// The implicit script: with this file and no install script of its own a
// package is built by node-gyp.
const gypFile = "binding.gyp"

// What is recorded of a tarball without refusing it.
const (
	findLinks      = "it has links, which clients leave out"
	findShrinkwrap = "it brings a lockfile for its own dependencies (npm-shrinkwrap.json)"
	findAgain      = "it has a file twice, with the same bytes"
	findPeculiar   = "its package.json has members twice or not in UTF-8, none of which decides anything"
)

// Inspect reads a tarball strictly and compares its package.json with the
// manifest that resolvers were given: what it requires, runs or puts on the PATH
// without the manifest saying so refuses it.
func (Protocol) Inspect(file ecosystem.File, row []byte, content ecosystem.Content) (ecosystem.Inspection, error) {
	t, ok := tarballOf(file.Path)
	if !ok {
		return ecosystem.Inspection{}, fault.Invalid("%s is not at the path of a tarball", clip(file.Name))
	}
	p := &unpacking{paths: map[string]bool{}, again: map[string]bool{}}
	if err := archive.TarGz(content, content.Size(), archive.Limits{Careless: true}, p.visit); err != nil {
		return ecosystem.Inspection{}, err
	}
	if err := p.compareAgain(content); err != nil {
		return ecosystem.Inspection{}, err
	}
	if p.packageJSON == nil {
		return ecosystem.Inspection{}, fault.Invalid("it has no package.json")
	}
	own, peculiar, err := readClaims(p.packageJSON)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	if err := own.areOf(t); err != nil {
		return ecosystem.Inspection{}, err
	}
	if peculiar {
		p.find(findPeculiar)
	}
	scripts := p.implied(own.scripts)
	if row != nil {
		listed, _, err := readClaims(row)
		if err != nil {
			return ecosystem.Inspection{}, err
		}
		findings, err := compare(&own, scripts, &listed)
		if err != nil {
			return ecosystem.Inspection{}, err
		}
		p.find(findings...)
	}
	if p.bundledRuns { // which no manifest says
		scripts = append(slices.Clone(scripts), bundledScript)
	}
	return ecosystem.Inspection{
		Description: ecosystem.Description{Name: t.project, Version: t.version, Requirements: own.requirements()},
		Scripts:     scripts, Bundled: p.bundled, Findings: p.findings,
	}, nil
}

// implied adds the implicit script to those that a package.json has.
func (p *unpacking) implied(scripts []string) []string {
	if p.gyp && !slices.Contains(scripts, "install") && !slices.Contains(scripts, "preinstall") {
		return append(slices.Clone(scripts), gypFile)
	}
	return scripts
}

// areOf checks that claims are about the release that the tarball's path names.
func (c *claims) areOf(t tarball) error {
	switch {
	case c.wrong != "":
		return fault.Invalid("its package.json has a %s of a form that clients read in different ways", c.wrong)
	case strings.TrimSpace(c.name) != t.project:
		return fault.Invalid("its package.json is about %q", clip(ecosystem.Line(c.name)))
	case c.version != t.version && cleanVersion(c.version) != t.version:
		return fault.Invalid("its package.json has the version %q", clip(ecosystem.Line(c.version)))
	}
	return nil
}

// cleanVersion is what registries make of a package.json's version: without
// blanks, a leading "v" or "=", and build metadata.
func cleanVersion(s string) string {
	s = strings.TrimLeft(strings.TrimSpace(s), "=v \t")
	s, _, _ = strings.Cut(s, "+")
	return s
}

// unpacking is one reading of a tarball.
type unpacking struct {
	top         string // the folder that all is in
	paths       map[string]bool
	again       map[string]bool // paths that came again
	packageJSON []byte
	gyp         bool
	bundled     []ecosystem.Bundled
	bundledRuns bool // something of a bundled package runs when the package is installed
	findings    []string
}

func (p *unpacking) find(findings ...string) {
	for _, f := range findings {
		if !slices.Contains(p.findings, f) {
			p.findings = append(p.findings, f)
		}
	}
}

// visit looks at a member. Clients drop the first element of each path,
// whatever it is, so that two of them would be merged.
func (p *unpacking) visit(m archive.Member, content io.Reader) error {
	top, rest, below := strings.Cut(m.Path, "/")
	switch {
	case p.top == "":
		p.top = top
	case p.top != top:
		return fault.Invalid("the archive has two folders at its top, which clients would merge")
	}
	switch {
	case m.Mode.IsDir():
		return nil
	case !below:
		return fault.Invalid("the archive has a file at its top, outside of the package's folder")
	case m.Link != "":
		p.find(findLinks)
		return nil
	}
	if p.paths[rest] {
		p.again[rest] = true
	}
	p.paths[rest] = true
	switch rest {
	case "package.json":
		var err error
		p.packageJSON, err = readMember(m, content)
		return err
	case gypFile:
		p.gyp = true
	case "npm-shrinkwrap.json":
		p.find(findShrinkwrap)
	}
	return p.bundle(rest, m, content)
}

// compareAgain refuses files that are there twice with different bytes: which
// one is installed would depend on the client. It reads the archive once more
// where that is needed.
func (p *unpacking) compareAgain(content ecosystem.Content) error {
	if len(p.again) == 0 {
		return nil
	}
	p.find(findAgain)
	sums := map[string][sha256.Size]byte{}
	return archive.TarGz(content, content.Size(), archive.Limits{Careless: true}, func(m archive.Member, content io.Reader) error {
		_, rest, _ := strings.Cut(m.Path, "/")
		if !p.again[rest] {
			return nil
		}
		h := sha256.New()
		if _, err := io.Copy(h, content); err != nil {
			return err
		}
		sum := [sha256.Size]byte(h.Sum(nil))
		if before, ok := sums[rest]; ok && before != sum {
			return fault.Invalid("the archive has a file twice, and not the same")
		}
		sums[rest] = sum
		return nil
	})
}

func readMember(m archive.Member, content io.Reader) ([]byte, error) {
	if m.Size > maxPackageJSON {
		return nil, fault.Invalid("it has a package.json of more than %d MiB", maxPackageJSON>>20)
	}
	b, err := io.ReadAll(content)
	if b == nil {
		b = []byte{}
	}
	return b, err
}
