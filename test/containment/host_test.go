package containment

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// registryHost is the one name that sandboxes reach.
const registryHost = "index.example"

// waitTimeout bounds a wait for something that must happen.
const waitTimeout = 3 * time.Minute

// stage is the host as the tests have made it, with the real daemon on it.
type stage struct {
	dir      string
	seen     *sightings
	world    *world
	registry *liar.Server
	secrets  map[string]string // token -> where on the host it is
	sockets  []string          // canary sockets in the file system
	daemon   *exec.Cmd
	client   *client.Client
	weak     *weakHouse
	house    *house

	// By the name of the law that they are under:
	tokens    map[string]string // of clients over the network
	snapshots map[string]string // of sandboxes in which something has run
	pooled    map[string]bool   // one is to wait in the pool
}

// randomWord is 16 random hex digits.
func randomWord() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// newToken is what a probe carries out; oracles know it by its beginning.
func (s *stage) newToken() string { return s.world.token + randomWord() }

// newStage sets everything up once for a test and takes it down with it.
func newStage(t *testing.T) *stage {
	t.Helper()
	dir, err := os.MkdirTemp("", "cfs") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		dir: dir, seen: &sightings{}, secrets: map[string]string{},
		tokens: map[string]string{}, snapshots: map[string]string{}, pooled: map[string]bool{},
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the gateway's and the sandboxes' users pass through
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	s.world = newWorld(t, s.seen)
	s.useNameServer(t)
	s.openCanaries(t)
	s.plantSecrets(t)
	s.openRegistry(t)
	s.house = newHouse(t, s)
	s.startDaemon(t)
	s.weak = newWeakHouse(t, s)
	return s
}

// useNameServer makes the world's name server the stage's own.
func (s *stage) useNameServer(t *testing.T) {
	t.Helper()
	path := filepath.Join(s.dir, "resolv.conf")
	s.write(t, "resolv.conf", "nameserver "+nameServer+"\n", 0o644)
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(path, target, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
}

// stagePorts are those of services that hosts run on their own addresses, and
// one at each end of the range.
func stagePorts() []int {
	return []int{1, 22, 80, 443, 631, 2375, 2376, 3306, 5432, 6379, 6443, 9200, 10250, 65535}
}

// openCanaries listens on the stage's own addresses: loopback and the wire's,
// both families, TCP and UDP, sockets in the file system and an abstract one.
func (s *stage) openCanaries(t *testing.T) {
	t.Helper()
	config := net.ListenConfig{}
	for _, port := range stagePorts() {
		for _, host := range []string{"127.0.0.1", "127.0.0.9", "::1", stageIPv4, stageIPv6} {
			address := net.JoinHostPort(host, fmt.Sprint(port))
			l, err := config.Listen(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			go s.world.answer("a service of the host", l)
			p, err := config.ListenPacket(t.Context(), "udp", address)
			if err != nil {
				t.Fatal(err)
			}
			go s.world.take("a service of the host", p)
			t.Cleanup(func() { l.Close(); p.Close() })
		}
	}
	for _, path := range []string{filepath.Join(s.dir, "mnt", "docker.sock"), "@" + s.world.token + "-abstract"} {
		if path[0] != '@' {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { // it is meant to be found
				t.Fatal(err)
			}
		}
		l, err := config.Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		s.sockets = append(s.sockets, path)
		go s.world.answer("a socket of the host", l)
		t.Cleanup(func() { l.Close() })
	}
	proxy, err := config.Listen(t.Context(), "tcp", "127.0.0.1:8118")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Close() })
	go openProxy(proxy)
}

// plantSecrets puts canaries where an invoker and a host have theirs.
func (s *stage) plantSecrets(t *testing.T) {
	t.Helper()
	plant := func(path, format string) {
		token := s.newToken()
		s.secrets[token] = path
		s.write(t, path, fmt.Sprintf(format, token), 0o600)
	}
	plant("home/.netrc", "machine files.example login me password %s\n")
	plant("home/.npmrc", "//files.example/:_authToken=%s\n")
	plant("home/.pypirc", "[pypi]\npassword = %s\n")
	plant("home/.aws/credentials", "[default]\naws_secret_access_key = %s\n")
	plant("home/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n")
	plant("home/.docker/config.json", `{"auths":{"files.example":{"auth":"%s"}}}`)
	plant("home/.bash_history", "export TOKEN=%s\n")
	plant("home/project/token.txt", "%s\n")
	plant("elsewhere/secret", "%s\n")
	token := s.newToken() // the registry's credential, which only the gateway uses
	s.secrets[token] = "the registry's credential"
	s.write(t, "home/.netrc", fmt.Sprintf("machine %s login me password %s\n%s", registryHost, token, s.read(t, "home/.netrc")), 0o600)
	token = s.newToken()
	s.secrets[token] = "the daemon's environment"
	t.Setenv("PLANTED_SECRET", token)
	t.Setenv("HOME", filepath.Join(s.dir, "home"))
}

// hostSecret is the path of one planted file.
func (s *stage) hostSecret() string { return filepath.Join(s.dir, "elsewhere", "secret") }

func (s *stage) write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	full := filepath.Join(s.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { // nothing here is secret but to sandboxes
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func (s *stage) read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// openRegistry publishes one package.
func (s *stage) openRegistry(t *testing.T) {
	t.Helper()
	s.registry = liar.New(t, registryHost)
	s.write(t, "registry-ca.pem", string(s.registry.CAPEM), 0o644)
	d := pypitest.Wheel(t, "golden", "1.0")
	d.URL = s.registry.URL(registryHost, "/p/"+d.File)
	s.registry.Script(registryHost+"/p/"+d.File, liar.Body("application/zip", d.Bytes))
	s.registry.Script(registryHost+"/p/"+d.File+".metadata", liar.Body("text/plain", d.Metadata))
	s.registry.Script(registryHost+"/simple/golden/", liar.Body(pypitest.TypeJSON, pypitest.Page(t, "golden", d)))
}

// apiAddress is where the daemon listens for clients with tokens, on the stage's
// loopback.
const apiAddress = "127.0.0.1:7433"

// startDaemon runs the built binary as a daemon of its own installation.
func (s *stage) startDaemon(t *testing.T) {
	t.Helper()
	binary := repository(t, "bin", "cofferdam")
	containers := s.startDocker(t)
	index := s.registry.URL(registryHost, "/simple/")
	s.write(t, "state/config.yaml", fmt.Sprintf(
		"default_template: host\npool: [ { policy: "+denying().name+", size: 1 }, { policy: "+listing().name+", size: 1 }, { policy: "+ending().name+", size: 1 } ]\nlisten: { address: '"+apiAddress+"' }\nrunsc: %s\nprobe_projects: [golden]\nupstreams:\n  - { ecosystem: python, index: %q, address: %q, ca_file: %s }\n%s",
		repository(t, "bin", "runsc"), index, strings.Replace(s.registry.Host(registryHost), registryHost, "127.0.0.1", 1), filepath.Join(s.dir, "registry-ca.pem"), s.house.config()+containers+s.layMachines(t),
	), 0o600)
	log, err := os.Create(filepath.Join(s.dir, "daemon.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.daemon = exec.Command(binary, "serve") // the daemon is asked to end
	s.daemon.Dir = "/"
	s.daemon.Env = append(os.Environ(), "COFFERDAM_STATE="+filepath.Join(s.dir, "state"), "COFFERDAM_RUNTIME="+s.runtime())
	s.daemon.Stdout, s.daemon.Stderr = log, log
	if err := s.daemon.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.daemon.Wait() }()
	s.client = client.New(filepath.Join(s.runtime(), "daemon.sock"))
	t.Cleanup(func() {
		if err := s.client.Shutdown(context.WithoutCancel(t.Context()), true); err != nil {
			t.Errorf("the daemon's end: %v", err)
			_ = s.daemon.Process.Kill() // it may have ended
		}
		<-ended
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", s.read(t, "daemon.log"))
		}
	})
	await(t, "the daemon to answer", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the daemon ended: %v\n%s", err, s.read(t, "daemon.log"))
		default:
		}
		_, err := s.client.Version(t.Context())
		return err == nil
	})
}

func (s *stage) runtime() string { return filepath.Join(s.dir, "run") }

// await waits for a condition.
func await(t *testing.T, what string, met func() bool) {
	t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s for %s", waitTimeout, what)
		}
	}
}

// escapes returns what the oracles have seen since mark of anybody, once all
// that was on its way has arrived; requests at the registry with a token are
// among it.
func (s *stage) escapes(t *testing.T, mark, requests int) []sighting {
	t.Helper()
	s.world.flush(t)
	all := s.seen.since(mark)
	for _, r := range s.registry.Requests()[requests:] {
		text := fmt.Sprint(r.Host, r.Path, r.Header)
		if strings.Contains(text, s.world.token) || r.Host != registryHost {
			all = append(all, sighting{"the registry", text})
		}
	}
	return all
}

// leaked lists the planted secrets that a text has.
func (s *stage) leaked(text string) []string {
	var found []string
	for token, where := range s.secrets {
		if strings.Contains(text, token) {
			found = append(found, where)
		}
	}
	slices.Sort(found)
	return found
}

// pause is a moment between repetitions; nothing is concluded from it.
func pause() <-chan time.Time { return time.After(5 * time.Millisecond) }
