package main

import (
	_ "embed" // the document that init begins with
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

//go:embed starter.yaml
var starter string

func newPolicyInit() *cobra.Command {
	var project string
	var assumePublic bool
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a policy to begin with",
		Long: `Writes a policy document with comments. It allows the packages that your project asks
for, each with what it requires, and refuses everything else. It reads requirements.txt
(and what has such a name: requirements-dev.txt, tests/requirements.txt, requirements/*.txt),
pyproject.toml, setup.cfg, Pipfile, uv.toml, hatch.toml, package.json (or package.yaml),
pnpm-workspace.yaml, go.mod and go.work in the current directory (or --project), with what
they include and the members of their workspaces; without go.work, also the modules of Go below
the directory. A package of Python gets the range of versions
that all these files give it, if they give one and no condition; one of requirements.txt only
where no other client has a lockfile beside it. A package of npm gets its range if the project's
lockfile has it in no version outside. A pre-release that a file names exactly, or a lockfile
pins, gets an entry of its own. Names that come from a directory, a repository or an address of your own are not
allowed from a registry: each is named with the line that asks for it, and so is what
can't be read. Nothing is read behind a link that leads out of the directory, or that an agent
could have put there; names that may be of something there are not allowed. If there are no
roots, a comment has examples.

A lockfile beside them (package-lock.json, npm-shrinkwrap.json, pnpm-lock.yaml, uv.lock, poetry.lock,
pdm.lock, Pipfile.lock, pylock.toml) says of names that they come from another registry, a
repository or a directory: these are not allowed either. Most entries of pdm.lock, of
version 9 of pnpm-lock.yaml and of pip's pylock.toml don't say which registry they are from.

Where any name may be such a one, because the project names another registry than the one
that is asked here or its workspace has members whose names can't be read, no name of that
ecosystem is allowed, and the lines say why. The one that is asked here is the first that
your configuration file has under upstreams, or else the one that this host's client is set
up to use. Files that set variables or run commands (.env, .env.local, .envrc, go.env,
mise.toml, Dockerfile, Compose files, Makefile, justfile, Taskfile, tox.ini, tox.toml,
noxfile.py, lerna.json, the scripts of package.json) are searched for what names a registry,
whichever it is; so are pdm.toml, poetry.toml, pixi.toml, pip.conf, requirements.in and
.pip-tools.toml. If all names come from the registry that is asked here, say --assume-public.

A note says which of the roots run something when they are installed, where a lockfile of npm's
(hasInstallScript) or one of pnpm's of version 6 (requiresBuild) tells, and which may, where pnpm's
settings (onlyBuiltDependencies, allowBuilds) list them: the policy has install_scripts: deny.
Another says that a file of Go imports what no go.mod has, as before "go mod tidy"; at most 500
files in 200 directories are looked at.

Read it before you run anything under it: it allows what those files ask for. The file
is policy.yaml unless you name one. An existing file is never overwritten.`,
		Example: `  cofferdam policy init
  cofferdam policy init --project ../service policy/service.yaml
  cofferdam run --policy policy.yaml --mount .:/workspace:rw -- npm ci`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := "policy.yaml"
			if len(args) == 1 {
				file = args[0]
			}
			return initPolicy(file, project, registriesHere(cmd.Context()), assumePublic)
		},
		ValidArgsFunction: completeFirst(completePolicyFile),
	}
	cmd.Flags().StringVar(&project, "project", ".", "directory of the project whose roots are taken")
	cmd.Flags().BoolVar(&assumePublic, "assume-public", false, "take all names for those of the registry that is asked here, also of a project that names another one, or has parts that can't be read")
	if err := cmd.MarkFlagDirname("project"); err != nil {
		panic(err) // as register
	}
	return cmd
}

func initPolicy(file, project string, asked askedHere, assumePublic bool) error {
	wants, err := wantsOf(project, asked, assumePublic)
	if err != nil {
		return err
	}
	document := starterPolicy(wants)
	if _, err := policy.Parse(file, []byte(document)); err != nil {
		return fmt.Errorf("the policy that would be written is wrong: %w", err)
	}
	if err := writeNew(file, document); err != nil {
		return err
	}
	for _, l := range wants.leftOut {
		if _, err := fmt.Fprintf(os.Stderr, "cofferdam: left out: %s\n", ui.Printable(l.String())); err != nil {
			return err
		}
	}
	for _, note := range wants.notes {
		if _, err := fmt.Fprintf(os.Stderr, "cofferdam: note: %s\n", ui.Printable(note)); err != nil {
			return err
		}
	}
	if err := tellDoubt(wants.doubted, assumePublic); err != nil {
		return err
	}
	_, err = fmt.Fprintf(os.Stderr, "cofferdam: wrote %s with %s; what each key does: cofferdam policy check %s\n", ui.Printable(file), ui.Printable(wants.summary()), ui.Quoted(file))
	return err
}

// tellDoubt says what follows from lines that name other registries, or what can't be read.
func tellDoubt(doubted, assumePublic bool) error {
	said := "names are left out that may come from elsewhere than the registry that is asked here; if all of them come from that one, say --assume-public"
	switch {
	case !doubted:
		return nil
	case assumePublic:
		said = "no name is left out for another registry, or for what can't be read, since you said --assume-public"
	}
	_, err := fmt.Fprintf(os.Stderr, "cofferdam: %s\n", said)
	return err
}

// summary says how many roots there are and which files they are from.
func (p projectWants) summary() string {
	from := p.from
	const shown = 8
	if more := len(from) - shown; more > 0 {
		from = append(slices.Clone(from[:shown]), fmt.Sprintf("%d more", more))
	}
	switch n := p.countRoots(); n {
	case 0:
		return "no roots: write yours below allowed_packages"
	case 1:
		return fmt.Sprintf("1 root, from %s: read it", strings.Join(from, ", "))
	default:
		return fmt.Sprintf("%d roots, from %s: read them", n, strings.Join(from, ", "))
	}
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

// starterPolicy puts the roots into the document, each with the versions that the project allows of it, and behind them the
// pre-releases that it names or pins.
func starterPolicy(p projectWants) string {
	var list strings.Builder
	for _, ecosystem := range pkgref.Ecosystems() {
		if len(p.roots[ecosystem]) == 0 {
			continue
		}
		fmt.Fprintf(&list, "  %s:\n", ecosystem)
		for _, name := range p.roots[ecosystem] {
			version := ""
			if among := p.ranges[ecosystem][name]; among != "" {
				version = fmt.Sprintf(" version: %q,", among)
				if slices.Contains(p.pinned[ecosystem], pinnedEntry{name, among, true}) {
					version += " prereleases: true,"
				}
			}
			fmt.Fprintf(&list, "    - { name: %q,%s with_dependencies: true }\n", name, version)
		}
		for _, e := range p.pinned[ecosystem] {
			if p.ranges[ecosystem][e.name] == e.version {
				continue // the root's own entry is that
			}
			also := ""
			if e.prereleases {
				also = " prereleases: true,"
			}
			fmt.Fprintf(&list, "    - { name: %q, version: %q,%s with_dependencies: true }\n", e.name, e.version, also)
		}
	}
	if list.Len() == 0 {
		return strings.Replace(starter, "allowed_packages:\n", "allowed_packages: {}\n", 1)
	}
	return strings.Replace(starter, "allowed_packages:\n", "allowed_packages:\n"+list.String(), 1)
}
