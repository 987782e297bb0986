package differential

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/module"
)

// fakeRegistry is one of npm, of Python and of Go, which has each package that it is asked for, and notes its name.
type fakeRegistry struct {
	*httptest.Server
	mu      sync.Mutex
	tarball []byte
	asked   map[string][]string // by the first part of the path, which each project has for itself
}

func startFakeRegistry(t *testing.T) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{asked: map[string][]string{}, tarball: packed(t, manifest())}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// names are those that a project's client has asked for, as it spells them.
func (r *fakeRegistry) names(project string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Clone(r.asked[project])
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *fakeRegistry) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	project, rest, _ := strings.Cut(strings.TrimPrefix(in.URL.EscapedPath(), "/"), "/")
	kind, rest, _ := strings.Cut(rest, "/")
	rest, err := url.PathUnescape(rest)
	if err != nil {
		http.NotFound(out, in)
		return
	}
	name, answer := "", ""
	switch kind {
	case "npm":
		out.Header().Set("Content-Type", "application/json")
		name, answer = rest, packument(rest)
	case "simple":
		name, answer = r.simple(out, project, rest)
	case "files":
		answer = r.fileAt(rest)
	case "go":
		name, answer = moduleFile(rest)
	}
	if name != "" && name != toolName { // pnpm looks for a newer one of itself
		r.mu.Lock()
		r.asked[project] = append(r.asked[project], name)
		r.mu.Unlock()
	}
	if answer == "" {
		http.NotFound(out, in)
		return
	}
	fmt.Fprint(out, answer)
}

// packument is npm's document of a package. Each wants the same two, which overrides may lead elsewhere.
func packument(name string) string {
	versions := map[string]any{}
	for _, v := range []string{"1.0.0", "1.2.3", "2.0.0", "2.3.4", "3.0.0-rc.1"} {
		release := map[string]any{"name": name, "version": v, "dist": map[string]string{"tarball": "http://127.0.0.1:9/" + name + "/-/x-" + v + ".tgz", "integrity": strongSRI}}
		if !strings.HasPrefix(name, "inner-") {
			release["dependencies"] = map[string]string{"inner-a": "^1.0.0", "inner-b": "*"}
		}
		versions[v] = release
	}
	text, err := json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": "2.3.4", "next": "3.0.0-rc.1"}, "versions": versions, "time": map[string]string{}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// simple is an index's page of a project, whose releases have their metadata in files of their own, and such a file.
func (r *fakeRegistry) simple(out http.ResponseWriter, project, rest string) (name, answer string) {
	name, file, _ := strings.Cut(rest, "/")
	metadata := func(version string) string {
		return "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nProvides-Extra: x\n"
	}
	if version, is := strings.CutSuffix(file, "-py3-none-any.whl.metadata"); is {
		return "", metadata(version[strings.LastIndexByte(version, '-')+1:])
	}
	out.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
	var files []map[string]any
	for _, v := range []string{"1.0", "1.2.3", "2.3.4"} {
		sum := sha256.Sum256([]byte(metadata(v)))
		wheel := strings.ReplaceAll(name, "-", "_") + "-" + v + "-py3-none-any.whl"
		files = append(files, map[string]any{"filename": wheel, "url": r.URL + "/" + project + "/simple/" + name + "/" + wheel, "hashes": map[string]string{"sha256": aSHA256}, "core-metadata": map[string]string{"sha256": hex.EncodeToString(sum[:])}, "upload-time": "2020-01-01T00:00:00Z"})
	}
	text, err := json.Marshal(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": name, "files": files, "versions": []string{"1.0", "1.2.3", "2.3.4"}})
	if err != nil {
		panic(err)
	}
	return name, string(text)
}

// fileAt is what is at an address: a wheel, or a tarball of npm's.
func (r *fakeRegistry) fileAt(name string) string {
	distribution, _, is := strings.Cut(name, "-1.0-")
	if !is {
		return string(r.tarball)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for file, text := range map[string]string{"METADATA": "Metadata-Version: 2.1\nName: " + distribution + "\nVersion: 1.0\n", "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "RECORD": ""} {
		f, err := z.Create(distribution + "-1.0.dist-info/" + file)
		if err != nil {
			panic(err)
		}
		fmt.Fprint(f, text)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// moduleFile is what a proxy has of one of Go's modules.
func moduleFile(rest string) (name, answer string) {
	escaped, file, _ := strings.Cut(rest, "/@v/")
	name, err := module.UnescapePath(escaped)
	if err != nil {
		return escaped, ""
	}
	version, kind := file, ""
	if at := strings.LastIndexByte(file, '.'); at >= 0 {
		version, kind = file[:at], file[at:]
	}
	switch {
	case kind == ".mod":
		return name, "module " + name + "\n"
	case kind == ".info":
		return name, fmt.Sprintf(`{"Version":%q,"Time":"2020-01-01T00:00:00Z"}`, version)
	case file == "list":
		return name, "v1.0.0\n"
	}
	return name, ""
}

// runClient runs a client in a project's directory, and says which names it asked for.
func runClient(t *testing.T, registry *fakeRegistry, project, dir string, env []string, argv ...string) askedAnswer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	said := ""
	if err != nil {
		said = fmt.Sprintf("%v: %s", err, out)
	}
	return asking(registry.names(project), said)
}
