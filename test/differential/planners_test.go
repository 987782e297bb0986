package differential

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// startArborist starts npm's own planner.
func startArborist(t *testing.T) planner {
	t.Helper()
	env := node(t)
	argv := []string{"npm", "install", "--prefix=.", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "npm@11", "@pnpm/lockfile.fs@1001", "@pnpm/lockfile.utils@1003"}
	modules := filepath.Join(installed(t, "lockfiles", env, argv...), "node_modules")
	worker := start(t, env, "node", filepath.Join("testdata", "arborist.cjs"), modules)
	return planner{ask: func(t *testing.T, dir string) askedAnswer {
		t.Helper()
		var said struct {
			Names []string
			Error string
		}
		worker.request(t, "npm", dir, &said)
		return asking(said.Names, said.Error)
	}}
}

func asking(names []string, err string) askedAnswer {
	a := askedAnswer{Error: err}
	for _, name := range names {
		a.Names = append(a.Names, askedName{Name: name})
	}
	return a
}

// startPNPM has the newest pnpm itself, which is a program of its own, plan a lockfile.
func startPNPM(t *testing.T) planner {
	t.Helper()
	env := node(t)
	registry := startFakeRegistry(t)
	modules := filepath.Join(installed(t, "pnpm", env, "npm", "install", "--prefix=.", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error", "pnpm@12"), "node_modules")
	programs, err := filepath.Glob(filepath.Join(modules, "@pnpm", "exe*", "pnpm"))
	if err != nil || len(programs) != 1 {
		t.Fatalf("pnpm's programs: %v, %v", programs, err)
	}
	home := homeless(t)
	return planner{func(t *testing.T, dir string) askedAnswer {
		t.Helper()
		project := projectOf(dir)
		return runClient(t, registry, project, dir, append(slices.Clone(home), "CI=1", "npm_config_fetch_retries=0", "pnpm_config_fetch_retries=0"), programs[0], "install", "--lockfile-only", "--ignore-scripts", "--registry="+registry.URL+"/"+project+"/npm/")
	}, registry.places(t)}
}

// startUVProjects has uv itself plan a lockfile.
func startUVProjects(t *testing.T) planner {
	t.Helper()
	bin := pythonBin(t)
	registry := startFakeRegistry(t)
	home := append(homeless(t), "UV_PYTHON="+filepath.Join(bin, "python"), "UV_PYTHON_DOWNLOADS=never", "UV_HTTP_RETRIES=0")
	return planner{func(t *testing.T, dir string) askedAnswer {
		t.Helper()
		project := projectOf(dir)
		return runClient(t, registry, project, dir, home, filepath.Join(bin, "uv"), "lock", "--default-index="+registry.URL+"/"+project+"/simple")
	}, registry.places(t)}
}

// startPackaging has packaging and pip's own parts read a file of each project, "": what is in its directory.
func startPackaging(tool, file string) func(t *testing.T) planner {
	return func(t *testing.T) planner {
		t.Helper()
		worker := startPythonManifests(t)
		return planner{ask: func(t *testing.T, dir string) (a askedAnswer) {
			t.Helper()
			worker.request(t, tool, filepath.Join(dir, file), &a)
			return a
		}}
	}
}

// startGo has go itself list all modules of a project.
func startGo(t *testing.T) planner {
	t.Helper()
	registry := startFakeRegistry(t)
	home := append(homeless(t), "GOSUMDB=off", "GOTOOLCHAIN=local", "GOWORK=")
	return planner{ask: func(t *testing.T, dir string) askedAnswer {
		t.Helper()
		project := projectOf(dir)
		env := append(slices.Clone(home), "GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY="+registry.URL+"/"+project+"/go", "GOFLAGS=-mod=mod")
		if hasFile(dir, "go.work") {
			env = append(env, "GOFLAGS=")
		}
		return runClient(t, registry, project, dir, env, "go", "list", "-m", "all")
	}}
}

// homeless is an environment with a home of its own, which has no settings, and without those of this machine's registries.
func homeless(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(strings.ToLower(v), "=")
		return strings.HasPrefix(name, "npm_config_") || strings.HasPrefix(name, "uv_") || strings.HasPrefix(name, "pnpm_") || strings.HasPrefix(name, "go") && name != "gocache" && name != "goroot" || strings.HasSuffix(name, "_proxy")
	})
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "GOCACHE="+filepath.Join(cache, "go-build"))
}

// projectOf is the name of a project's directory, of which a test has several.
func projectOf(dir string) string { return filepath.Base(filepath.Dir(dir)) + filepath.Base(dir) }

// places leads to the registry what projects have from an address, and to a repository what they have from one.
func (r *fakeRegistry) places(t *testing.T) *strings.Replacer {
	t.Helper()
	repository := t.TempDir()
	for name, text := range map[string]string{"package.json": `{"name":"a","version":"1.0.0"}`, "pyproject.toml": "[project]\nname = \"a\"\nversion = \"1.0\"\n"} {
		if err := os.WriteFile(filepath.Join(repository, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, argv := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@code.example", "commit", "--quiet", "-m", "x"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository}, argv...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", argv, err, out)
		}
	}
	return strings.NewReplacer(fakePlace, r.URL, fakeRepository, "file://"+repository)
}
