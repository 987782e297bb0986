package main

import (
	"context"
	"os"
	"path"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/serve/config"
	"github.com/cofferdam-dev/cofferdam/internal/serve/daemon"
)

// askedHere gives the registry that names of an ecosystem are asked of. An error says why it is not known.
type askedHere func(pkgref.Ecosystem) (index string, err error)

// registriesHere are those of this host's daemon, which are looked for when the first is wanted: the configured ones, or what the host's
// own clients say.
func registriesHere(ctx context.Context) askedHere {
	found := sync.OnceValues(func() (discover.Found, error) { return findRegistries(ctx) })
	return func(ecosystem pkgref.Ecosystem) (string, error) {
		f, err := found()
		if err != nil {
			return "", err
		}
		for _, u := range f.Upstreams {
			if u.Ecosystem == ecosystem { // the first is the one that clients in sandboxes are told to ask
				return u.Index, nil
			}
		}
		for _, m := range f.Missing {
			if m.Ecosystem == ecosystem {
				return "", m.Why
			}
		}
		return "", fault.Invalid("the configuration file names none for %s", ecosystem)
	}
}

func findRegistries(ctx context.Context) (discover.Found, error) {
	if err := onThisHost(ctx, "which registries are asked"); err != nil {
		return discover.Found{}, err
	}
	paths, err := config.DefaultPaths()
	if err != nil {
		return discover.Found{}, err
	}
	cfg, _, err := paths.Load()
	if err != nil {
		return discover.Found{}, err
	}
	if err := daemon.CheckHostPrograms(paths, cfg); err != nil {
		return discover.Found{}, err
	}
	return daemon.Registries(ctx, cfg, paths, os.Environ())
}

// settingFiles are files of a project that set variables or run commands, in whatever language: a registry that is named there is one that its
// packages may come from.
func settingFiles() []string {
	return []string{
		".env", ".env.local", ".envrc", "go.env", "mise.toml", ".mise.toml", "Dockerfile", "Containerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml",
		"compose.override.yaml", "compose.override.yml", "docker-compose.override.yaml", "docker-compose.override.yml",
		"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml", "tox.ini", "tox.toml", "noxfile.py",
		"requirements.in", ".pip-tools.toml", "lerna.json",
	}
}

// searchRegistries reads what names registries beside the manifests. A directory of such a name is none of these files.
func searchRegistries(w *manifest.Wants, files projectFiles, namer installer.RegistryNamer) error {
	for _, format := range namer.RegistryFiles() {
		if files.hasNoFolder(path.Dir(format.Name)) || files.isFolder(format.Name) {
			continue
		}
		if _, err := w.Include(format, format.Name); err != nil {
			return err
		}
	}
	for _, name := range settingFiles() {
		if !files.isFolder(name) {
			w.Search(name, namer.RegistrySign())
		}
	}
	return nil
}
