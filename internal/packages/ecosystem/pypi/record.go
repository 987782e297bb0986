package pypi

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

const maxRecord = 64 << 20

// record is a wheel's RECORD: what it says of each of its files.
type record map[string]recorded

// recorded is a line of RECORD; sum is "" where the line has no digest.
type recorded struct {
	algorithm string
	sum       string // unpadded URL-safe base64
	size      int64  // -1: not given
	line      int
}

// readRecord reads RECORD: lines of path, digest and size, each path once. A character that ends a
// line for some readers and not for others is refused, and so are quotes within a field: each
// reader has rules of its own for them.
func readRecord(data []byte) (record, error) {
	if !utf8.Valid(data) || bytes.ContainsFunc(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), strange) {
		return nil, fault.Invalid("the wheel's RECORD has control characters, or is no text")
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord = 3
	r.ReuseRecord = true
	list := record{}
	for {
		line, err := r.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fault.Invalid("the wheel's RECORD can't be read")
		}
		at, _ := r.FieldPos(0)
		if strings.ContainsAny(strings.Join(line, ""), "\"\n") {
			return nil, fault.Invalid("the wheel's RECORD has a quote or a line feed within a field, in line %d", at)
		}
		if _, twice := list[line[0]]; twice {
			return nil, fault.Invalid("the wheel's RECORD lists a file twice, in line %d", at)
		}
		entry := recorded{size: -1, line: at}
		entry.algorithm, entry.sum, _ = strings.Cut(line[1], "=")
		if line[2] != "" {
			if entry.size, err = strconv.ParseInt(line[2], 10, 64); err != nil || entry.size < 0 {
				return nil, fault.Invalid("the wheel's RECORD gives an invalid size in line %d", at)
			}
		}
		list[line[0]] = entry
	}
}

// strange tells whether a rune is a control character, or ends a line for some
// readers of text.
func strange(r rune) bool {
	return r != '\n' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}

// gaps are what a RECORD does not say as it should, and what pip and uv make up for alike: they
// install the files of the wheel, and write those into the RECORD of the installation. Lines with
// absolute paths stay in pip's beside them.
type gaps struct {
	unlisted named // that it does not list
	rooted   named // that it lists by a path that begins with a slash
}

// named are files of a wheel, of which one is told.
type named struct {
	count int
	first string
}

func (n *named) addPath(path string) {
	if n.count == 0 {
		n.first = path
	}
	n.count++
}

// takeLine takes the line of a file of the wheel from the list. A line that says
// where the file lies below the root of the disk is one, too, unless another has its place, if
// the file lies in a directory with the wheel's own name. pip keeps such lines and, outside of a
// virtual environment, removes what they name when it uninstalls or upgrades: a wheel that
// could say /home/... or /workspace/... there would remove others' files, and no code of it would have run.
func (w *openedWheel) takeLine(list record, name string, found *gaps) (recorded, bool) {
	line, listed := list[name]
	if !listed && w.isOwnFile(name) {
		if line, listed = list["/"+name]; listed {
			found.rooted.addPath(name)
			name = "/" + name
		}
	}
	delete(list, name)
	return line, listed
}

// isOwnFile tells whether a file lies in a directory that has the name of the wheel's distribution
// or of its description, and that no system or project has at the top of its disk.
func (w *openedWheel) isOwnFile(name string) bool {
	top, _, below := strings.Cut(name, "/")
	if !below || top == w.info {
		return below
	}
	ref, ok := pkgref.ParseDistInfo(w.info)
	own, err := pkgref.CanonicalName(pkgref.Python, top)
	return ok && err == nil && own == ref.Name && !slices.Contains(rootDirectories(), own)
}

// rootDirectories are names that directories at the top of a disk have: those of the file system hierarchy
// standard and of our templates, and those at which people commonly mount a project. A distribution may have any
// of these names, and would own nothing below that directory.
func rootDirectories() []string {
	return []string{
		"afs", "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "lost-found", "media", "mnt", "nix", "opt", "proc",
		"root", "run", "sbin", "selinux", "snap", "srv", "sys", "tmp", "usr", "var",
		"app", "apps", "build", "builds", "cache", "code", "config", "content", "data", "github", "input", "kaggle", "models", "notebooks", "output", "project", "projects", "repo", "shared",
		"site", "source", "src", "testbed", "users", "volume", "volumes", "work", "workdir", "workspace", "workspaces",
	}
}

// findings tell of the gaps.
func (g gaps) findings() []string {
	var list []string
	if g.unlisted.count > 0 {
		list = append(list, fmt.Sprintf("the wheel's RECORD does not list all of its files (not %d of them, such as %q); pip and uv install them like the others", g.unlisted.count, redact.Cut(g.unlisted.first, 100)))
	}
	if g.rooted.count > 0 {
		list = append(list, fmt.Sprintf("the wheel's RECORD lists files by absolute paths (%d of them, such as %q); pip and uv install them where the wheel has them, and outside of a virtual environment pip also removes those paths when it uninstalls", g.rooted.count, redact.Cut("/"+g.rooted.first, 100)))
	}
	return list
}

// refusalError is the error for gaps in a wheel that was built here: whatever built it has lists
// without any, and what nobody but the build made is looked at more strictly.
func (g gaps) refusalError() error {
	switch {
	case g.unlisted.count > 0:
		return fault.Invalid("the wheel has a file that its RECORD does not list")
	case g.rooted.count > 0:
		return fault.Invalid("the wheel's RECORD leads out of the wheel")
	}
	return nil
}

// nowhere is the error for the first line of what is left of a RECORD when each
// of the wheel's files was taken from it; nil if nothing is. Installers keep
// such lines, and remove what they name when they uninstall.
func (list record) nowhere() error {
	first := ""
	for name, entry := range list {
		if first == "" || entry.line < list[first].line {
			first = name
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case path.IsAbs(first) || slices.Contains(strings.Split(first, "/"), ".."):
		return fault.Invalid("the wheel's RECORD leads out of the wheel, in line %d", list[first].line)
	}
	return fault.Invalid("the wheel's RECORD lists a file that the wheel does not have, in line %d", list[first].line)
}

// unlisted tells whether a file of the description may be missing from RECORD,
// or be in it without a digest: RECORD itself and its signatures.
func unlisted(name string) bool {
	return name == "RECORD" || name == "RECORD.jws" || name == "RECORD.p7s"
}

// hasher gives the hash of the digest; ErrInvalid for none and for those that
// can be forged.
func (r recorded) hasher() (hash.Hash, error) {
	switch r.algorithm {
	case "sha256":
		return sha256.New(), nil
	case "sha384":
		return sha512.New384(), nil
	case "sha512":
		return sha512.New(), nil
	}
	return nil, fault.Invalid("the wheel's RECORD has a file without a strong digest")
}

// checkContent reads a file and compares it with its line.
func (r recorded) checkContent(content io.Reader) error {
	h, err := r.hasher()
	if err != nil {
		return err
	}
	n, err := io.Copy(h, content)
	if err != nil {
		return err
	}
	sum := base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	if strings.TrimRight(r.sum, "=") != sum || (r.size >= 0 && r.size != n) {
		return fault.Invalid("the wheel has a file that is not the one that its RECORD lists")
	}
	return nil
}
