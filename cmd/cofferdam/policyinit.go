package main

import (
	_ "embed" // the document that init begins with
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
	"github.com/cofferdam-dev/cofferdam/internal/ui"
)

//go:embed starter.yaml
var starter string

func newPolicyInit() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a policy to begin with",
		Long: `Writes a policy document with comments. It allows the packages that your project asks
for, each with what it requires, and refuses everything else. It takes them from
requirements.txt, pyproject.toml, package.json and go.mod in the current directory (or
--project). If there are none, a comment has examples.

Read it before you run anything under it: it allows what those files ask for. The file
is policy.yaml unless you name one. An existing file is never overwritten.`,
		Example: `  cofferdam policy init
  cofferdam policy init --project ../service policy/service.yaml
  cofferdam run --policy policy.yaml --mount .:/workspace:rw -- npm ci`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := "policy.yaml"
			if len(args) == 1 {
				file = args[0]
			}
			return initPolicy(file, project)
		},
		ValidArgsFunction: first(completePolicyFile),
	}
	cmd.Flags().StringVar(&project, "project", ".", "directory of the project whose roots are taken")
	if err := cmd.MarkFlagDirname("project"); err != nil {
		panic(err) // as register
	}
	return cmd
}

func initPolicy(file, project string) error {
	roots, from, err := projectRoots(project)
	if err != nil {
		return err
	}
	document := starterPolicy(roots)
	if _, err := policy.Parse(file, []byte(document)); err != nil {
		return fmt.Errorf("the policy that would be written is wrong: %w", err)
	}
	if err := writeNew(file, document); err != nil {
		return err
	}
	count := 0
	for _, names := range roots {
		count += len(names)
	}
	found := "no roots: write yours below allowed_packages"
	if count > 0 {
		found = fmt.Sprintf("%d roots, from %s: read them", count, strings.Join(from, ", "))
	}
	_, err = fmt.Fprintf(os.Stderr, "cofferdam: wrote %s with %s; what each key does: cofferdam policy check %s\n", ui.Printable(file), ui.Printable(found), ui.Quoted(file))
	return err
}

// writeNew makes a file that is not there, durably; one that is there stays.
func writeNew(path, text string) error {
	entry, err := findNamed(path)
	if err != nil {
		return fault.Invalid("%s can't be written: it %s", path, because(err))
	}
	err = entry.Create([]byte(text), 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.ErrConflict, "%s is there already, and is not written over; name another file", path)
	}
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "%s can't be written", path)
	}
	return nil
}

// starterPolicy puts the roots into the document.
func starterPolicy(roots map[pkgref.Ecosystem][]string) string {
	var list strings.Builder
	for _, ecosystem := range pkgref.Ecosystems() {
		if len(roots[ecosystem]) == 0 {
			continue
		}
		fmt.Fprintf(&list, "  %s:\n", ecosystem)
		for _, name := range roots[ecosystem] {
			fmt.Fprintf(&list, "    - { name: %q, with_dependencies: true }\n", name)
		}
	}
	if list.Len() == 0 {
		return strings.Replace(starter, "allowed_packages:\n", "allowed_packages: {}\n", 1)
	}
	return strings.Replace(starter, "allowed_packages:\n", "allowed_packages:\n"+list.String(), 1)
}

// inProject reads one of a project's files; nil if it has none of that name.
func inProject(project, name string) ([]byte, error) {
	path := filepath.Join(project, name)
	if _, err := kindNamed(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no file, no error
	}
	return readDocument("project's file", path, maxPolicy)
}
