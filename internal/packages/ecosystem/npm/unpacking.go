package npm

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/digest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// unpacking is one reading of a tarball.
type unpacking struct {
	ran         bool   // it comes out of a sandbox in which its install scripts ran
	top         string // the folder that all is in
	paths       map[string]bool
	again       map[string]bool // paths that came again
	packageJSON []byte
	gyp         bool
	bundled     []ecosystem.Bundled
	bundledRuns bool // something of a bundled package runs when the package is installed
	findings    []string
	contents    digest.Files
	inside      ecosystem.Inside
	licenses    license.Claims
}

// result is what the package brings.
func (p *unpacking) result(own *claims) ecosystem.Inside {
	for name, file := range own.bins {
		p.inside.AddEntryPoint("bin: " + name + " = " + file)
	}
	if own.binFolder != "" {
		p.inside.AddEntryPoint("bin: all in " + own.binFolder)
	}
	p.inside.Sorted()
	return p.inside
}

func (p *unpacking) addFindings(findings ...string) {
	for _, f := range findings {
		if !slices.Contains(p.findings, f) {
			p.findings = append(p.findings, f)
		}
	}
}

// visitMember looks at a member. Clients drop the first element of each path,
// whatever it is, so that two of them would be merged.
func (p *unpacking) visitMember(m archive.Member, content io.Reader) error {
	if p.ran {
		if err := onlyFiles(m); err != nil {
			return err
		}
	}
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
		return p.checkLink(m, rest)
	case m.Extended && !isPlainPath(m.Path):
		return fault.Invalid("the archive has a file whose path has letters outside of ASCII and is not in its own header, where some clients look for it")
	}
	if p.paths[rest] {
		p.again[rest] = true
	}
	p.paths[rest] = true
	head, content, err := ecosystem.Head(content)
	if err != nil {
		return err
	}
	p.inside.AddPath(rest, head)
	counted := &tee{from: content}
	if err := p.describeFile(rest, m, counted); err != nil {
		return err
	}
	return p.contents.Add(rest, counted.wholeContent())
}

// describeFile looks at what a file says of the package, or of one inside it.
func (p *unpacking) describeFile(path string, m archive.Member, content io.Reader) error {
	switch path {
	case "package.json":
		var err error
		p.packageJSON, err = readMember(m, content)
		return err
	case gypFile:
		p.gyp = true
	case "npm-shrinkwrap.json":
		p.addFindings(findShrinkwrap)
	}
	if !strings.Contains(path, "/") {
		if err := p.licenses.Collect(path, func(most int64) ([]byte, error) { return io.ReadAll(io.LimitReader(content, most)) }); err != nil {
			return err
		}
	}
	return p.bundle(path, m, content)
}

// tee keeps what was read, which is the few files that describe a package.
type tee struct {
	from io.Reader
	read bytes.Buffer
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.from.Read(p)
	t.read.Write(p[:n])
	return n, err
}

// wholeContent is everything, what was read already included.
func (t *tee) wholeContent() io.Reader { return io.MultiReader(&t.read, t.from) }

// checkLink looks at a link. npm leaves links out, others make them; a hard link is
// an empty file for one client, and a copy for another.
func (p *unpacking) checkLink(m archive.Member, path string) error {
	if m.Mode.IsRegular() {
		return fault.Invalid("the archive has a hard link, of which clients make different files")
	}
	for name := range strings.SplitSeq(path, "/") {
		switch name {
		case "node_modules", "package.json", gypFile, "npm-shrinkwrap.json":
			return fault.Invalid("the archive has a link where a package is described or looked for, which only some clients make")
		}
	}
	p.addFindings(findLinks)
	return nil
}

// isPlainPath tells whether a path is ASCII. npm's unpacker can lose any other that an
// extension header gives, by where the pieces that it decompresses end.
func isPlainPath(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r >= utf8.RuneSelf })
}

// compareAgain refuses files that are there twice with different bytes: which
// one is installed would depend on the client. It reads the archive once more
// where that is needed.
func (p *unpacking) compareAgain(content ecosystem.Content) error {
	if len(p.again) == 0 {
		return nil
	}
	p.addFindings(findAgain)
	sums := map[string][sha256.Size]byte{}
	return archive.TarGz(content, content.Size(), p.tarballLimits(), func(m archive.Member, content io.Reader) error {
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
