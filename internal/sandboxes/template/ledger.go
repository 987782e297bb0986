package template

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Ledger is what was installed in a template before any sandbox ran: its
// baseline.
type Ledger struct {
	System []SystemPackage `json:"system"`
	Python []PythonPackage `json:"python"`
	Tools  []Tool          `json:"tools,omitempty"`
}

// SystemPackage is a package of the distribution.
type SystemPackage struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
}

// PythonPackage is a distribution that Python finds, with its folder inside.
type PythonPackage struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Folder  string `json:"folder"`
}

// Tool is a program that came from neither, but from a registry through the
// gateway.
type Tool struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Ecosystem string `json:"ecosystem"`
	Package   string `json:"package"` // at its registry
	File      string `json:"file"`
	SHA256    string `json:"sha256"` // hex, of the file that it came in
	Source    string `json:"source"` // its URL, without credentials
	Run       string `json:"run"`    // in whose records the log has it
	Record    uint64 `json:"record"`
}

// Ledger returns the baseline of a template; empty for the host template,
// whose programs nobody but the host's owner knows.
func (s *Store) Ledger(t Template) (Ledger, error) {
	var l Ledger
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(t.Root.Path), "ledger.json"))
	if os.IsNotExist(err) {
		return l, nil
	}
	if err != nil {
		return l, fault.Wrap(fault.ErrUnavailable, err, "the ledger of template %s cannot be read", t.Name)
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, fault.Wrap(fault.ErrUnavailable, err, "the ledger of template %s is damaged: build it again", t.Name)
	}
	return l, nil
}

// writeLedger makes ledger.json of the lists that customize.sh handed out.
func (b *debianBuild) writeLedger() error {
	var l Ledger
	for _, row := range b.readRows("packages.tsv") {
		l.System = append(l.System, SystemPackage{row[0], row[1], row[2]})
	}
	for _, row := range b.readRows("python.tsv") {
		l.Python = append(l.Python, PythonPackage{row[0], row[1], row[2]})
	}
	if len(l.System) == 0 || len(l.Python) == 0 {
		return fault.New(fault.ErrUnavailable, "the build left no list of what it installed, so it is not used")
	}
	l.Tools = b.tools
	raw, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return err
	}
	for _, f := range []string{"packages.tsv", "python.tsv"} {
		_ = os.Remove(filepath.Join(b.made, f))
	}
	if err := atomicfile.Replace(filepath.Join(b.made, "ledger.json"), raw, 0o644); err != nil {
		return diskFault(err, b.store.dir)
	}
	return nil
}

// readRows reads a list of three tab-separated columns.
func (b *debianBuild) readRows(file string) [][]string {
	raw, err := os.ReadFile(filepath.Join(b.made, file))
	if err != nil {
		return nil
	}
	var rows [][]string
	for line := range strings.Lines(string(raw)) {
		if row := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(row) == 3 {
			rows = append(rows, row)
		}
	}
	return rows
}
