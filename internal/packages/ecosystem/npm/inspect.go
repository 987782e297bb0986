package npm

import (
	"math"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// maxPackageJSON bounds a package.json; the largest real ones have some
// hundred kilobytes.
const maxPackageJSON = 4 << 20

// The implicit script: with this file and no install script of its own a
// package is built by node-gyp.
const gypFile = "binding.gyp"

// The findings that are recorded of a tarball without refusing it.
const (
	findLinks      = "it has links, which clients leave out"
	findShrinkwrap = "it brings a lockfile for its own dependencies (npm-shrinkwrap.json)"
	findAgain      = "it has a file twice, with the same bytes"
	findPeculiar   = "its package.json has members twice or not in UTF-8, none of which decides anything"
)

// tarballLimits are those of a tarball. One client computes sizes in 32 bits, and would
// take what lies behind a larger file for something else.
func (p *unpacking) tarballLimits() archive.Limits {
	if p.ran {
		return ranLimits()
	}
	return archive.Limits{Careless: true, Unpacked: math.MaxInt32}
}

// Inspect reads a tarball strictly and compares its package.json with the
// manifest that resolvers were given: what it requires, runs or puts on the PATH
// without the manifest saying so refuses it.
func (Protocol) Inspect(file ecosystem.File, row []byte, content ecosystem.Content) (ecosystem.Inspection, error) {
	t, ok := tarballOf(file.Path)
	if !ok || t.ran != (file.Kind == policy.KindRan) {
		return ecosystem.Inspection{}, fault.Invalid("%s is not at the path of a tarball", redact.Cut(file.Name, maxQuoted))
	}
	p := &unpacking{ran: t.ran, paths: map[string]bool{}, again: map[string]bool{}, contents: digest.Files{}}
	if err := archive.TarGz(content, content.Size(), p.tarballLimits(), p.visitMember); err != nil {
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
	if err := own.checkRelease(t); err != nil {
		return ecosystem.Inspection{}, err
	}
	if peculiar {
		p.addFindings(findPeculiar)
	}
	scripts := p.implied(own.scripts)
	if err := p.compareListed(&own, scripts, row); err != nil {
		return ecosystem.Inspection{}, err
	}
	if p.bundledRuns { // which no manifest says
		scripts = append(slices.Clone(scripts), bundledScript)
	}
	found := ecosystem.Inspection{
		Description: ecosystem.Description{Name: t.project, Version: t.version, Requirements: own.requirements()},
		Scripts:     scripts, Bundled: p.bundled, Findings: p.findings, Contents: p.contents.Digest(), Inside: p.result(&own),
	}
	return found, p.tellManifest(content, &found)
}

// compareListed compares what a package says of itself with what the index says of it, which
// is nil if there is nothing, and with what may be left of it once its scripts ran.
func (p *unpacking) compareListed(own *claims, scripts []string, row []byte) error {
	if p.ran && (len(scripts) > 0 || own.installs || p.bundledRuns) {
		return fault.Invalid("the package whose scripts ran still runs something when it is installed")
	}
	if row == nil {
		return nil
	}
	listed, _, err := readClaims(row)
	if err != nil {
		return err
	}
	findings, err := compare(own, scripts, &listed)
	if err != nil {
		return err
	}
	if p.ran { // that is why it is there
		findings = slices.DeleteFunc(findings, func(f string) bool { return f == findScript })
	}
	p.addFindings(findings...)
	return nil
}

// implied adds the implicit script to those that a package.json has.
func (p *unpacking) implied(scripts []string) []string {
	if p.gyp && !slices.Contains(scripts, "install") && !slices.Contains(scripts, "preinstall") {
		return append(slices.Clone(scripts), gypFile)
	}
	return scripts
}

// checkRelease checks that claims are about the release that the tarball's path names.
func (c *claims) checkRelease(t tarball) error {
	switch {
	case c.wrong != "":
		return fault.Invalid("its package.json has a %s of a form that clients read in different ways", c.wrong)
	case strings.TrimSpace(c.name) != t.project:
		return fault.Invalid("its package.json is about %q", redact.Cut(ecosystem.Line(c.name), maxQuoted))
	case c.version != t.version && cleanVersion(c.version) != t.version:
		return fault.Invalid("its package.json has the version %q", redact.Cut(ecosystem.Line(c.version), maxQuoted))
	}
	return nil
}

// cleanVersion cleans a package.json's version as registries do: without
// blanks, a leading "v" or "=", and build metadata.
func cleanVersion(s string) string {
	s = strings.TrimLeft(strings.TrimSpace(s), "=v \t")
	s, _, _ = strings.Cut(s, "+")
	return s
}
