package ecosystem

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
)

// Inside is what a file brings, for a person who is asked about it: names as the
// publisher wrote them, which are data, and nothing is decided by them.
type Inside struct {
	// Modules are what programs can import.
	Modules []string `json:"modules,omitempty"`
	// EntryPoints are programs and hooks that its installation makes known: "console_scripts:
	// rich = rich.__main__:main", "bin: esbuild = bin/esbuild".
	EntryPoints []string `json:"entry_points,omitempty"`
	// Starts are files whose lines run at every start of the interpreter.
	Starts []string `json:"starts,omitempty"`
	// Native are files of machine code, by their first bytes or their names.
	Native []string `json:"native,omitempty"`
	// Builds are what runs where a release is built from its source to be installed: "setup.py
	// (812 bytes)", "build backend: flit_core.buildapi".
	Builds []string `json:"builds,omitempty"`
	// Suspect are lines to read of the code that runs when it is installed, as package suspect
	// tells them, the worst of each file first.
	Suspect []string `json:"suspect,omitempty"`
	// Read counts the texts of that code that were looked at for such lines; 0: nothing is known of it.
	Read int `json:"read,omitempty"`
	// Sources are files of code that is compiled, by kind: ".pyx: 2 files, such as a.pyx".
	Sources []string `json:"sources,omitempty"`
	// Paths are those of its files, and Files how many there are, which may be more.
	Paths []string `json:"paths,omitempty"`
	Files int      `json:"files,omitempty"`
}

// Bounds of what is told of a file's inside.
const (
	maxInside     = 60  // names of each list
	maxInsideName = 200 // bytes of one
	maxPaths      = 500
)

// AddPath takes a file by its path, and its first bytes if they are at hand.
func (in *Inside) AddPath(p string, head []byte) {
	in.Files++
	if len(in.Paths) < maxPaths && len(p) <= maxInsideName {
		in.Paths = append(in.Paths, p)
	}
	if MachineCode(p, head) {
		addName(&in.Native, p)
	}
}

// AddModule takes a name once, as AddEntryPoint and AddStart do.
func (in *Inside) AddModule(name string) { addName(&in.Modules, name) }

// AddEntryPoint adds an entry point.
func (in *Inside) AddEntryPoint(text string) { addName(&in.EntryPoints, text) }

// AddStart adds a file that runs at every start.
func (in *Inside) AddStart(name string) { addName(&in.Starts, name) }

// AddBuild adds what runs where it is built.
func (in *Inside) AddBuild(text string) { addName(&in.Builds, text) }

// moreSuspect is in the place of the lines for which there was no room.
const moreSuspect = "there are more lines to read than are told"

// AddSuspect takes the lines of one text that was looked at, as package suspect tells them. That
// there was no room for all is the last one.
func (in *Inside) AddSuspect(lines ...string) {
	in.Read++
	room := max(0, maxInside-1-len(in.Suspect))
	in.Suspect = append(in.Suspect, lines[:min(len(lines), room)]...)
	if len(lines) > room && len(in.Suspect) < maxInside {
		in.Suspect = append(in.Suspect, moreSuspect)
	}
}

// Sources counts files of code that is compiled, by kind. The zero value is empty.
type Sources struct{ kinds map[string]source }

// source are the files of one kind.
type source struct {
	count int
	first string
}

// Add counts a file if it is one.
func (s *Sources) Add(p string) {
	kind := strings.ToLower(path.Ext(p))
	switch base := path.Base(p); {
	case base == "Cargo.toml" || base == "CMakeLists.txt" || base == "meson.build" || base == "build.rs":
		kind = base
	case !compiled(kind):
		return
	}
	if s.kinds == nil {
		s.kinds = map[string]source{}
	}
	of := s.kinds[kind]
	if of.count++; of.first == "" || p < of.first {
		of.first = p
	}
	s.kinds[kind] = of
}

// Told are the kinds, as Inside has them.
func (s *Sources) Told() (list []string) {
	for _, kind := range slices.Sorted(maps.Keys(s.kinds)) {
		of := s.kinds[kind]
		noun := "files"
		if of.count == 1 {
			noun = "file"
		}
		addName(&list, fmt.Sprintf("%s: %d %s, such as %s", kind, of.count, noun, of.first))
	}
	return list
}

// compiled tells the ending of a file in a language whose compiler makes machine code.
func compiled(ending string) bool {
	switch ending {
	case ".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs", ".f", ".f90", ".f95", ".for", ".m", ".mm", ".s", ".asm", ".cu", ".zig", ".go":
		return true
	}
	return false
}

// Sorted puts all lists in order, but for those whose order says something.
func (in *Inside) Sorted() {
	for _, l := range []*[]string{&in.Modules, &in.EntryPoints, &in.Starts, &in.Native, &in.Paths} {
		slices.Sort(*l)
	}
}

func addName(list *[]string, name string) {
	name = redact.Cut(Line(name), maxInsideName)
	if name != "" && len(*list) < maxInside && !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// MachineCode tells a file of machine code, by its name and its first bytes, which may be missing.
func MachineCode(p string, head []byte) bool {
	for _, magic := range [][]byte{
		[]byte("\x7fELF"), []byte("MZ"), {0xcf, 0xfa, 0xed, 0xfe}, {0xce, 0xfa, 0xed, 0xfe}, {0xca, 0xfe, 0xba, 0xbe},
	} {
		if bytes.HasPrefix(head, magic) {
			return true
		}
	}
	name := strings.ToLower(path.Base(p))
	switch path.Ext(name) {
	case ".so", ".pyd", ".dll", ".dylib", ".node", ".exe", ".a", ".lib", ".o", ".obj", ".syso":
		return true
	}
	return strings.Contains(name, ".so.")
}

// Head gives a reader's first bytes, and a reader of all of it.
func Head(content io.Reader) (head []byte, all io.Reader, err error) {
	head = make([]byte, 4)
	n, err := io.ReadFull(content, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return head[:n], io.MultiReader(bytes.NewReader(head[:n]), content), err
}
