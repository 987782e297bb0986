package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project"
	"github.com/cofferdam-dev/cofferdam/internal/serve/project/foreign"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// maxForeign bounds another tool's settings.
const maxForeign = 1 << 20

// projectImportFlags are those of `project import`.
type projectImportFlags struct {
	from, dir     string
	write, asJSON bool
}

// projectImported is what `project import --json` writes.
type projectImported struct {
	Source string         `json:"source"`
	From   foreign.Format `json:"from"`
	Files  []importedFile `json:"files"`
	Wrote  bool           `json:"wrote"`
	Notes  []foreign.Note `json:"notes"`
}

type importedFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Exists  bool   `json:"exists"` // before; then nothing is written
}

func newProjectImport() *cobra.Command {
	var f projectImportFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Make settings of a devcontainer.json",
		Long: `Reads a devcontainer.json and makes a cofferdam.yaml of it. A run can do no more under that
than under what was read. A setting that can't be enforced is left out, and stderr has a line
for each.

It shows what it would write, as a difference, and writes with --write alone. A file that
is there already is never changed. Read what was made, and then say "cofferdam project
allow".`,
		Example: `  cofferdam project import .devcontainer/devcontainer.json
  cofferdam project import --write .devcontainer/devcontainer.json
  cofferdam project import --from devcontainer --directory ../app settings.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return f.importProject(args[0])
		},
		ValidArgsFunction: completeFirst(completeFiles("json", "jsonc")),
	}
	cmd.Flags().StringVar(&f.from, "from", "", "whose settings they are: devcontainer (default: told by the keys that are in them)")
	cmd.Flags().StringVar(&f.dir, "directory", ".", "the project's directory")
	cmd.Flags().BoolVar(&f.write, "write", false, "write the file")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "write JSON")
	registerCompletion(cmd, "from", completeWords(string(foreign.DevContainer)))
	if err := cmd.MarkFlagDirname("directory"); err != nil {
		panic(err) // as register
	}
	return cmd
}

func (f projectImportFlags) importProject(file string) error {
	dir, made, err := f.convert(file)
	if err != nil {
		return err
	}
	edits, err := f.listEdits(dir, made)
	if err != nil {
		return err
	}
	there := slices.IndexFunc(edits, func(e fileEdit) bool { return !e.isNew })
	if f.write && there >= 0 {
		return fault.New(fault.ErrConflict, "%s is there already, and nothing is written over; see what would be in it without --write, and put it in by hand", edits[there].path)
	}
	if f.write {
		for _, e := range edits {
			if err := e.writeFile(); err != nil {
				return err
			}
		}
	}
	if f.asJSON {
		return f.writeJSON(file, made, edits)
	}
	stderr := ui.NewStderr(os.Stderr)
	for _, n := range made.Notes {
		stderr.Say("%s:%d:%d: %s: %s", file, n.Line, n.Column, n.What, n.Says)
	}
	for _, e := range edits {
		if _, err := io.WriteString(os.Stdout, ui.PrintableText(e.diff)); err != nil {
			return err
		}
	}
	switch {
	case f.write:
		stderr.Say("wrote %s into %s; read %s, and then: cofferdam project allow", ui.Plural(len(edits), "file", "files"), dir, ui.Noun(len(edits), "it", "them"))
	case there >= 0:
		stderr.Say("nothing was written; %s is there already and stays as it is", edits[there].path)
	default:
		stderr.Say("nothing was written; --write does it")
	}
	return nil
}

// convert reads the settings, for the project's directory.
func (f projectImportFlags) convert(file string) (dir string, made foreign.Result, err error) {
	if f.from != "" && !slices.Contains(foreign.Formats(), foreign.Format(f.from)) {
		return "", made, fault.Invalid("--from is %q; it is devcontainer", f.from)
	}
	if dir, err = filepath.Abs(f.dir); err != nil {
		return "", made, err
	}
	dir = resolved(dir)
	if kind, err := kindNamed(dir); err != nil || kind != hostpath.Dir {
		return "", made, fault.Invalid("--directory %s is no directory", f.dir)
	}
	text, err := readDocument("settings", file, maxForeign)
	if err != nil {
		return "", made, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", made, fault.Invalid("your home is not known, so that ~ is not; set HOME")
	}
	made, err = foreign.Convert(file, text, foreign.Options{Format: foreign.Format(f.from), Dir: dir, Home: resolved(home)})
	return dir, made, err
}

// listEdits returns the change of each file: there is one file, the settings.
func (f projectImportFlags) listEdits(dir string, made foreign.Result) ([]fileEdit, error) {
	at := filepath.Join(dir, project.File)
	e, err := findEdit("file", at, maxForeign)
	if err != nil {
		return nil, err
	}
	e.path, e.after = at, made.Settings
	e.diff = unified(e)
	return []fileEdit{e}, nil
}

func (f projectImportFlags) writeJSON(file string, made foreign.Result, edits []fileEdit) error {
	out := projectImported{Source: file, From: made.Format, Wrote: f.write, Notes: append([]foreign.Note{}, made.Notes...)}
	for _, e := range edits {
		out.Files = append(out.Files, importedFile{Path: e.path, Content: string(e.after), Exists: !e.isNew})
	}
	return ui.WriteJSON(os.Stdout, out)
}
