package npm

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

const otherRegistry = "another registry is named in the configuration file, so these names are not allowed here"

// settings reads a directory's files that say which registries packages come from.
func settings(w *manifest.Wants, dir string) error {
	for _, f := range []manifest.Format{npmrcFormat(), yarnrcFormat(), classicFormat(), bunFormat()} {
		if _, err := w.Include(f, path.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

// npmrcFormat reads which registries npm and pnpm take packages from.
func npmrcFormat() manifest.Format {
	return manifest.Format{Name: ".npmrc", Read: func(w *manifest.Wants, m manifest.Text) error {
		for number, line := range m.Lines() {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			noteKey(w, m, number, strings.Trim(strings.TrimSpace(key), `"'`), strings.Trim(strings.TrimSpace(value), `"'`))
		}
		return nil
	}}
}

// noteKey notes a setting of npm's that names a registry, or may. Yarn's first version has options of its commands as well.
func noteKey(w *manifest.Wants, m manifest.Text, number int, key string, value any) {
	scope, is := strings.CutSuffix(key, ":registry")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case strings.HasPrefix(key, "#"), strings.HasPrefix(key, ";"), strings.HasPrefix(key, "//"): // a comment, or of one registry
	case strings.Contains(key, `\`) || strings.Contains(key, "${"):
		w.Withhold(m.File, number, key, "it has a variable or a backslash, which is not read here, and may name a registry")
	case is && strings.HasPrefix(scope, "@"):
		if !w.IsAsked(value) {
			keepScope(w, m, number, scope)
		}
	case key == "registry", strings.HasPrefix(key, "--") && strings.TrimLeft(last, "-") == "registry":
		w.Registry(m.File, number, key, value)
	case namesRegistry(key):
		w.Withhold(m.File, number, key, "it may name a registry, or a file in which one is named")
	}
}

// namesRegistry tells of a setting whether it may say where packages come from. By its prefix, npm finds another file of settings; mirrors
// are of what programs load down.
func namesRegistry(key string) bool {
	switch key {
	case "prefix":
		return true
	case "install-links", "init-author-url", "init.author.url", "replace-registry-host", "registry-supports-time-field", "registrySupportsTimeField",
		"exclude-links-from-lockfile", "excludeLinksFromLockfile", "npmPublishRegistry", "npmAuditRegistry", "npmRegistries":
		return false
	}
	return manifest.NamesRegistry(key) && !strings.Contains(strings.ToLower(key), "mirror")
}

// classicFormat reads the same of yarn's first version: lines with a key and a value, quoted or not.
func classicFormat() manifest.Format {
	return manifest.Format{Name: ".yarnrc", Read: func(w *manifest.Wants, m manifest.Text) error {
		for number, line := range m.Lines() {
			line = strings.TrimSpace(line)
			key := line
			if quoted, is := strings.CutPrefix(line, `"`); is {
				key, _, _ = strings.Cut(quoted, `"`)
			} else if at := strings.IndexAny(line, " \t:"); at >= 0 && !strings.HasPrefix(line, "@") {
				key = line[:at]
			} else if at := strings.IndexAny(line, " \t"); at >= 0 {
				key = strings.TrimSuffix(line[:at], ":")
			}
			value := strings.TrimLeft(line[strings.Index(line, key)+len(key):], "\": \t")
			noteKey(w, m, number, key, strings.Trim(value, `"`))
		}
		return nil
	}}
}

// yarnrcFormat reads the same of yarn's later versions, and their catalogs.
func yarnrcFormat() manifest.Format {
	return manifest.Format{Name: ".yarnrc.yml", Read: func(w *manifest.Wants, m manifest.Text) error {
		var document struct {
			Server string `yaml:"npmRegistryServer"`
			Scopes map[string]struct {
				Server string `yaml:"npmRegistryServer"`
			} `yaml:"npmScopes"`
			Catalog    specTable            `yaml:"catalog"`
			Catalogs   map[string]specTable `yaml:"catalogs"`
			Extensions map[string]extension `yaml:"packageExtensions"`
			Others     map[string]any       `yaml:",inline"`
		}
		if err := yaml.Unmarshal(m.Data, &document); err != nil {
			return err
		}
		if document.Server != "" {
			w.Registry(m.File, m.LineOf("npmRegistryServer"), "npmRegistryServer", document.Server)
		}
		for _, key := range slices.Sorted(maps.Keys(document.Others)) {
			noteKey(w, m, m.LineOf(key), key, document.Others[key])
		}
		for _, scope := range slices.Sorted(maps.Keys(document.Scopes)) {
			if document.Scopes[scope].Server != "" {
				keepScope(w, m, m.LineOf("npmScopes", scope), "@"+strings.TrimPrefix(scope, "@"))
			}
		}
		if err := catalogs(w, m, document.Catalog, document.Catalogs); err != nil {
			return err
		}
		return extensions(w, m, document.Extensions)
	}}
}

// bunFormat reads the same of bun.
func bunFormat() manifest.Format {
	return manifest.Format{Name: "bunfig.toml", Read: func(w *manifest.Wants, m manifest.Text) error {
		var document struct {
			Install map[string]any `toml:"install"`
		}
		if err := toml.Unmarshal(m.Data, &document); err != nil {
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(document.Install)) {
			noteKey(w, m, m.LineOf(key), key, document.Install[key])
		}
		scopes, _ := document.Install["scopes"].(map[string]any)
		for _, scope := range slices.Sorted(maps.Keys(scopes)) {
			keepScope(w, m, m.LineOf("scopes", scope), "@"+strings.TrimPrefix(scope, "@"))
		}
		return nil
	}}
}

func keepScope(w *manifest.Wants, m manifest.Text, number int, scope string) {
	w.KeepAll(scope + "/")
	w.LeaveOut(m.File, number, scope+"/*", otherRegistry)
}

// RegistryFiles implements installer.RegistryNamer: the files of a package's directory are read with it, but for lockfiles.
func (client) RegistryFiles() []manifest.Format {
	return []manifest.Format{installer.LockFormat("package-lock.json"), installer.LockFormat("npm-shrinkwrap.json"), installer.LockFormat("pnpm-lock.yaml")}
}

// RegistrySign implements installer.RegistryNamer.
func (client) RegistrySign() manifest.Sign { return signs.FindString }

// signs are the variables of npm, pnpm, yarn and bun, and the options and commands by which they are set.
var signs = regexp.MustCompile(`(?i)\b(?:npm|pnpm|yarn|bun|corepack)_[a-z0-9_@:.-]*(?:regist|userconfig|globalconfig|rc_filename)|--(?:[a-z0-9@:.-]*registry|regi?s?t?r?)\b|--(?:user|global)config\b` +
	`|\b(?:npm|pnpm|yarn|bun)\b[^&|;]*?\sset\s[^&|;]*?regist|:registry\s*=|(?-i:\bregistry)\s*=(?:[\s\\"']*https?:|.*npmrc)|\bcodeartifact\s+login\b`)
