package pypi

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/suspect"
)

// Bounds of what is kept of a source distribution to tell what its build runs.
const (
	maxProjectFile  = 64 << 10 // bytes of a pyproject.toml: its reader looks through all keys for each of them
	maxBackendPaths = 16       // an honest one has one; each file is compared with each
	maxCodeFiles    = 24       // of which lines are looked at
	maxLinked       = 200      // bytes of what is told of a link
)

// The files at the top by which a distribution is built.
const (
	setupFile   = "setup.py"
	projectFile = "pyproject.toml"
)

// Starts implements ecosystem.Starter: what runs where a release is built, or at each start of Python.
func (Protocol) Starts(name string) string {
	switch base := path.Base(name); {
	case name == setupFile, name == projectFile, name == "setup.cfg", name == "meson.build", name == "CMakeLists.txt", base == "build.rs":
		return "when it is built"
	case startsWith(firstPart(strings.TrimPrefix(strings.TrimPrefix(name, "data/purelib/"), "data/platlib/"))):
		return "at each start of Python"
	}
	return ""
}

// firstPart is the first name of a path.
func firstPart(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// project is what a pyproject.toml says of the build.
type project struct {
	unread   bool
	backend  string
	requires []string
	paths    []string // backend-path: folders of the distribution itself, in which the backend is
}

// readProject reads one. One that can't be read is not taken for empty, and a key in other letters is another key, as it
// is for who builds: for a struct of Go's, the library takes both for one.
func readProject(text []byte) project {
	var document map[string]any
	if len(text) > maxProjectFile || toml.Unmarshal(text, &document) != nil {
		return project{unread: true}
	}
	table, there := document["build-system"]
	if !there {
		return project{}
	}
	system, isTable := table.(map[string]any)
	backend, isText := textOf(system["build-backend"])
	requires, areTexts := textsOf(system["requires"])
	paths, arePaths := textsOf(system["backend-path"])
	if !isTable || !isText || !areTexts || !arePaths || len(paths) > maxBackendPaths {
		return project{unread: true}
	}
	return project{backend: backend, requires: requires, paths: paths}
}

// textOf is a value that is a text or is not there.
func textOf(value any) (text string, is bool) {
	text, is = value.(string)
	return text, is || value == nil
}

// textsOf is a value that is a list of texts or is not there.
func textsOf(value any) (texts []string, are bool) {
	list, is := value.([]any)
	for _, v := range list {
		text, is := v.(string)
		if !is {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, is || value == nil
}

// defaultBackend is the one of a distribution that names none, also where it says in which of its folders that lies.
const defaultBackend = "setuptools.build_meta"

// inTree tells a file of the backend that the distribution brings itself, or one beside it, which that can import.
func (p project) inTree(name string) bool {
	if path.Ext(name) != ".py" {
		return false
	}
	module, _, _ := strings.Cut(cmp.Or(p.backend, defaultBackend), ":")
	module, _, _ = strings.Cut(module, ".")
	for _, folder := range p.paths {
		below := path.Join(path.Clean("/"+folder), module)
		at := "/" + name
		beside := path.Dir(at) == path.Dir(below) && path.Dir(at) != "/" // of those at the top, see builtCode
		if at == below+".py" || strings.HasPrefix(at, below+"/") || beside {
			return true
		}
	}
	return false
}

// code is a file of code that building may run.
type code struct {
	name  string
	size  int64
	lines []string // to read, of package suspect
}

// codeReader looks at the code of one distribution.
type codeReader struct{ lines suspect.Reader }

func (r *codeReader) readCode(name string, size int64, content io.Reader) (code, error) {
	text, err := io.ReadAll(io.LimitReader(content, suspect.MaxText+1))
	if err != nil {
		return code{}, err
	}
	return code{name, size, r.lines.Lines(name, text)}, nil
}

// linkedCode is a file that is a link.
func linkedCode(name string, m archive.Member) code {
	return code{name, 0, []string{redact.Cut(ecosystem.Line(name+" is a link to "+m.Link), maxLinked) + ", which was not looked at"}}
}

// unreadCode is a file for which there is no room.
func unreadCode(name string, size int64) code {
	return code{name, size, []string{redact.Cut(ecosystem.Line(name), maxLinked) + " and those behind it were not looked at: there are more files of code than are"}}
}

// builtCode tells what building a distribution runs; top are the Python files beside its
// setup.py, which that or a backend of its own may import, and own those of such a backend.
func (p project) builtCode(in *ecosystem.Inside, top, own []code) {
	i := slices.IndexFunc(top, func(c code) bool { return c.name == setupFile })
	if i >= 0 {
		in.AddBuild(fmt.Sprintf("setup.py (%d bytes), which is a program", top[i].size))
		in.AddSuspect(top[i].lines...)
	}
	switch {
	case p.unread:
		in.AddBuild("pyproject.toml, which can't be read: which program builds it is not known")
	case len(p.paths) > 0:
		in.AddBuild("A PROGRAM THAT IT BRINGS ITSELF is its build backend: " + cmp.Or(p.backend, defaultBackend) + ", in backend-path " + strings.Join(p.paths, ", "))
	case p.backend != "":
		in.AddBuild("build backend: " + p.backend)
	default:
		in.AddBuild("build backend: setuptools, since it names none")
	}
	for _, c := range own {
		in.AddBuild(fmt.Sprintf("%s (%d bytes), of its own build backend", c.name, c.size))
		in.AddSuspect(c.lines...)
	}
	if len(p.requires) > 0 {
		in.AddBuild("requires to build: " + strings.Join(p.requires, ", "))
	}
	for _, c := range top {
		isOwn := slices.ContainsFunc(own, func(o code) bool { return o.name == c.name })
		if (i >= 0 || len(p.paths) > 0) && c.name != setupFile && !isOwn {
			in.AddSuspect(c.lines...)
		}
	}
}
