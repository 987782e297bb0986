package ecosystem

import (
	"bytes"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/masking"
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
	if machineCode(p, head) {
		add(&in.Native, p)
	}
}

// AddModule takes a name once, as AddEntryPoint and AddStart do.
func (in *Inside) AddModule(name string) { add(&in.Modules, name) }

// AddEntryPoint is AddModule for an entry point.
func (in *Inside) AddEntryPoint(text string) { add(&in.EntryPoints, text) }

// AddStart is AddModule for a file that runs at every start.
func (in *Inside) AddStart(name string) { add(&in.Starts, name) }

// Sorted puts all lists in order.
func (in *Inside) Sorted() {
	for _, l := range []*[]string{&in.Modules, &in.EntryPoints, &in.Starts, &in.Native, &in.Paths} {
		slices.Sort(*l)
	}
}

func add(list *[]string, name string) {
	name = masking.Cut(Line(name), maxInsideName)
	if name != "" && len(*list) < maxInside && !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// machineCode tells a file of machine code. head may be empty.
func machineCode(p string, head []byte) bool {
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
