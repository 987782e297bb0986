package debian_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/debian"
)

// mirror serves the repository of testdata, and lies where it is told to. Its lists were
// signed once, by a key of which only the public half is kept.
type mirror struct {
	t       *testing.T
	url     string
	suite   string
	archive *debian.Archive

	mu    sync.Mutex // guards what follows
	lies  map[string]func() []byte
	asked []string
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Fatal("there is no apt here, and packages of the distribution come by it")
	}
	m := &mirror{t: t, suite: "steady", lies: map[string]func() []byte{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	keyring, err := filepath.Abs("testdata/keyring.pgp")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "debian")
	m.archive, err = debian.Open(debian.Config{Dir: dir, Log: slog.New(slog.DiscardHandler), Sources: func(context.Context) (debian.Sources, error) {
		line := "deb [signed-by=" + keyring + "] " + strings.Replace(m.url, "://", "://ann:secret@", 1) + " " + m.suite + " main"
		return debian.Sources{Codename: "steady", Lines: []string{line}, Settings: []string{
			`Acquire::Retries "0";`, `Acquire::http::Proxy "DIRECT";`, `Acquire::AllowInsecureRepositories "true";`, `APT::Get::AllowUnauthenticated "true";`,
		}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ServeHTTP implements http.Handler.
func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.asked = append(m.asked, r.URL.Path)
	lie := m.lies[r.URL.Path]
	m.mu.Unlock()
	if lie != nil {
		_, _ = w.Write(lie())
		return
	}
	http.FileServer(http.Dir("testdata/mirror")).ServeHTTP(w, r)
}

// lie has the mirror answer a path with something else.
func (m *mirror) lie(path string, with func() []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lies[path] = with
}

// file is one of the repository's, with changes.
func (m *mirror) file(path string, changes ...string) func() []byte {
	m.t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", path))
	if err != nil {
		m.t.Fatal(err)
	}
	changed := strings.NewReplacer(changes...).Replace(string(raw))
	if len(changes) > 0 && changed == string(raw) {
		m.t.Fatalf("%s has nothing to change", path)
	}
	return func() []byte { return []byte(changed) }
}

// row is a package as the sandbox's dpkg-query prints it.
func row(name, version, architecture, depends string) string {
	return strings.Join([]string{"install ok installed", name, version, architecture, "", "", "", "", depends, "", "", "", ""}, "\t") + "\n"
}

func request(t *testing.T, names ...string) debian.Request {
	t.Helper()
	installed, err := debian.ReadInstalled(row("dpkg", "1.21.23", "amd64", "tar (>= 1.28-1)") + row("bash", "5.2.15-2+b13", "amd64", "") + row("tar", "1.34+dfsg-1.2", "amd64", ""))
	if err != nil {
		t.Fatal(err)
	}
	return debian.Request{Names: names, Installed: installed, Codename: "steady"}
}

// bring does all of a request, and returns the names of what it came to.
func (m *mirror) bring(w debian.Request) ([]string, error) {
	m.t.Helper()
	set, err := m.archive.Resolve(m.t.Context(), w)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err := set.Close(); err != nil {
			m.t.Error(err)
		}
	}()
	if err := set.Fetch(m.t.Context()); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range set.Packages() {
		f, err := set.Open(p)
		if err != nil {
			return nil, err
		}
		head := make([]byte, 8)
		if _, err := io.ReadFull(f, head); err != nil || string(head) != "!<arch>\n" {
			m.t.Errorf("%s begins with %q, %v", p.File, head, err)
		}
		_ = f.Close()
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names, nil
}

func TestWhatAWishComesTo(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	set, err := m.archive.Resolve(t.Context(), request(t, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	packages := set.Packages()
	i := slices.IndexFunc(packages, func(p debian.Package) bool { return p.Name == "tool" })
	if len(packages) != 2 || i < 0 {
		t.Fatalf("tool comes to %+v", packages)
	}
	if p := packages[i]; p.Version != "2:1.0-1" || p.Architecture != "amd64" || p.Size != 634 || len(p.SHA256) != 64 || p.URL != m.url+"/pool/tool_1.0-1_amd64.deb" {
		t.Errorf("tool is %+v", p)
	}
	var did []string
	for _, a := range set.Order() {
		did = append(did, append(slices.Clone(a.Unpack), a.Configure...)...)
	}
	if !slices.Equal(did, []string{"lib_1.0-1_all.deb", "tool_2%3a1.0-1_amd64.deb", "lib", "tool"}) {
		t.Errorf("dpkg is to do %q", did)
	}
	w := request(t, "tool")
	w.Recommends = true
	if names, err := m.bring(w); err != nil || !slices.Equal(names, []string{"extra", "lib", "tool"}) {
		t.Errorf("with what is recommended it is %q, %v", names, err)
	}
	if names, err := m.bring(request(t, "bash", "lib")); err != nil || !slices.Equal(names, []string{"lib"}) {
		t.Errorf("beside what is installed, and in no list, it is %q, %v", names, err)
	}
}

func TestWhatIsInstalledIsNotBroughtAgain(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	w := request(t, "lib", "tool")
	more, err := debian.ReadInstalled(row("lib", "1.0-1", "all", "") + row("tool", "2:1.0-1", "amd64", "lib (>= 1.0)"))
	if err != nil {
		t.Fatal(err)
	}
	w.Installed = append(w.Installed, more...)
	if names, err := m.bring(w); err != nil || len(names) > 0 {
		t.Errorf("%q are brought again, %v", names, err)
	}
}

// TestALyingMirror: each lie is refused with a sentence, and after it the truth is had.
func TestALyingMirror(t *testing.T) {
	t.Parallel()
	const release, lists, deb = "/dists/steady/InRelease", "/dists/steady/main/binary-amd64/Packages", "/pool/tool_1.0-1_amd64.deb"
	for name, c := range map[string]struct {
		lie     func(m *mirror)
		request string
		says    string
	}{
		"a changed release file": {
			func(m *mirror) { m.lie(release, m.file("mirror"+release, "Origin: Tests", "Origin: Liars")) }, "tool", "not signed by a key of the distribution",
		},
		"an unsigned one": {func(m *mirror) {
			text := string(m.file("mirror" + release)())
			_, text, _ = strings.Cut(text, "\n\n")
			text, _, _ = strings.Cut(text, "-----BEGIN PGP SIGNATURE")
			m.lie(release, func() []byte { return []byte(text) })
			m.lie("/dists/steady/Release", func() []byte { return []byte(text) })
		}, "tool", "can't be had or verified"},
		"a list that was not signed": {
			func(m *mirror) {
				m.lie(lists, m.file("mirror"+lists, "Depends: lib (>= 1.0)", "Depends: lib (>= 0.9)"))
			}, "tool", "can't be had or verified",
		},
		"one that has expired": {func(m *mirror) { m.suite = "stale" }, "tool", "can't be had or verified"},
		"another file of the same size": {
			func(m *mirror) { m.lie(deb, m.file("mirror"+deb, "debian-binary", "debian-binarx")) }, "tool", "others than its lists say",
		},
		"a file that does not end": {
			func(m *mirror) {
				m.lie(deb, func() []byte { return append(m.file("mirror"+deb)(), make([]byte, 1<<20)...) })
			}, "tool", "others than its lists say",
		},
		"a file that is not there":   {func(m *mirror) { m.lie(deb, func() []byte { return nil }) }, "tool", "others than its lists say"},
		"what is not listed":         {func(*mirror) {}, "absent", "Unable to locate package absent"},
		"more than may be brought":   {func(*mirror) {}, "giant", "this one needs more"},
		"a path out of the mirror":   {func(*mirror) {}, "climber", "others than its lists say"},
		"what takes another away":    {func(*mirror) {}, "rival", "can't be installed"},
		"a pattern":                  {func(*mirror) {}, "t.*l", "no name of a package"},
		"a name to be taken away":    {func(*mirror) {}, "bash-", "no name of a package"},
		"an option":                  {func(*mirror) {}, "-oAPT::Get::AllowUnauthenticated=1", "no name of a package"},
		"a mirror that is not there": {func(m *mirror) { m.url = "http://127.0.0.1:1" }, "tool", "can't be had or verified"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMirror(t)
			c.lie(m)
			names, err := m.bring(request(t, c.request))
			if err == nil {
				t.Fatalf("%q were brought", names)
			}
			refused, ok := errors.AsType[*fault.Fault](err)
			if !ok {
				t.Fatalf("it is told %v", err)
			}
			if said := refused.Sentence; !strings.Contains(said, c.says) || strings.Contains(said, "secret") || strings.Contains(said, "127.0.0.1") {
				t.Errorf("it says %q, want %q and nothing of where the mirror is", said, c.says)
			}
			if c.says == "no name of a package" && len(m.asked) > 0 {
				t.Errorf("the mirror was asked for %q", m.asked)
			}
		})
	}
}

// TestAnOlderListIsNotTaken: a mirror that had something newer can't go back.
func TestAnOlderListIsNotTaken(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	if _, err := m.bring(request(t, "tool")); err != nil {
		t.Fatal(err)
	}
	m.lie("/dists/steady/InRelease", m.file("older/InRelease"))
	m.lie("/dists/steady/main/binary-amd64/Packages", m.file("older/main/binary-amd64/Packages"))
	if names, err := m.bring(request(t, "tool")); err == nil && !slices.Equal(names, []string{"lib", "tool"}) {
		t.Errorf("the older list was taken: %q", names)
	} else if err != nil && strings.Contains(err.Error(), "Unable to locate") {
		t.Errorf("the older list was taken: %v", err)
	}
}

func TestAMirrorOfAnotherDistribution(t *testing.T) {
	t.Parallel()
	m := newMirror(t)
	w := request(t, "tool")
	w.Codename = "restless"
	if _, err := m.bring(w); err == nil || !strings.Contains(err.Error(), "the template is of restless") {
		t.Errorf("packages of another distribution were brought: %v", err)
	}
}
