//go:build long

package keyring_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/keyring"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// gnome is GNOME's keyring on a bus of its own, with a home of its own.
type gnome struct {
	t        *testing.T
	bus, dir string
	conn     *dbus.Conn
	session  dbus.ObjectPath
}

// newGnome starts both; they end with the test.
func newGnome(t *testing.T) *gnome {
	t.Helper()
	r := &gnome{t: t, dir: t.TempDir()}
	if err := os.Chmod(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("dbus-run-session", "--", "sh", "-c",
		`printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null; echo "$DBUS_SESSION_BUS_ADDRESS"; cat`)
	cmd.Env = r.environment()
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("a keyring is needed (scripts/deps long): %v", err)
	}
	t.Cleanup(func() {
		_ = hold.Close() // the session ends with it, and with that the bus and all on it
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	r.bus = strings.TrimSpace(line)
	if r.conn, err = dbus.Connect(r.bus); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.conn.Close() })
	var none dbus.Variant
	r.call("/org/freedesktop/secrets", "Service.OpenSession", []any{&none, &r.session}, "plain", dbus.MakeVariant(""))
	return r
}

func (r *gnome) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "XDG_RUNTIME_DIR=" + r.dir, "XDG_DATA_HOME=" + r.dir, "LANG=C.UTF-8", "DBUS_SESSION_BUS_ADDRESS=" + r.bus}
}

// call calls the keyring, and keeps what it says.
func (r *gnome) call(path dbus.ObjectPath, member string, keep []any, args ...any) {
	r.t.Helper()
	if err := r.conn.Object("org.freedesktop.secrets", path).Call("org.freedesktop.Secret."+member, 0, args...).Store(keep...); err != nil {
		r.t.Fatalf("%s: %v", member, err)
	}
}

// login is the collection that the password has opened.
const login dbus.ObjectPath = "/org/freedesktop/secrets/collection/login"

// put has the item of a service have a text.
func (r *gnome) put(service, text string) {
	r.t.Helper()
	type value struct {
		Session     dbus.ObjectPath
		Parameters  []byte
		Value       []byte
		ContentType string
	}
	var item, prompt dbus.ObjectPath
	r.call(login, "Collection.CreateItem", []any{&item, &prompt}, map[string]dbus.Variant{
		"org.freedesktop.Secret.Item.Label":      dbus.MakeVariant("of a test"),
		"org.freedesktop.Secret.Item.Attributes": dbus.MakeVariant(map[string]string{"service": service}),
	}, value{r.session, []byte{}, []byte(text), "text/plain"}, true)
	if prompt != "/" {
		r.t.Fatalf("the keyring asks a person: %s", prompt)
	}
}

func (r *gnome) remove(service string) {
	r.t.Helper()
	var open, locked []dbus.ObjectPath
	r.call("/org/freedesktop/secrets", "Service.SearchItems", []any{&open, &locked}, map[string]string{"service": service})
	for _, item := range open {
		var prompt dbus.ObjectPath
		r.call(item, "Item.Delete", []any{&prompt})
	}
}

// tool runs the command with which people use a keyring.
func (r *gnome) tool(stdin string, args ...string) (string, error) {
	r.t.Helper()
	cmd := exec.Command("secret-tool", args...)
	cmd.Env, cmd.Stdin = r.environment(), strings.NewReader(stdin)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func (r *gnome) item(service string) keyring.Item {
	return keyring.Item{Attributes: map[string]string{"service": service}, Bus: r.bus}
}

// TestARealKeyringConforms, as the stand-in does.
func TestARealKeyringConforms(t *testing.T) {
	r, number := newGnome(t), 0
	sourcetest.Conforms(t, func(*testing.T) sourcetest.Harness {
		number++
		service := fmt.Sprint("model-", number)
		return sourcetest.Harness{
			Source: r.item(service),
			Put:    func(_ *testing.T, text string) { r.put(service, text) },
			Remove: func(*testing.T) { r.remove(service) },
		}
	})
}

// TestWhatPeopleStore: the source finds what secret-tool has stored, by its attributes, and says
// what is the matter where it does not: nothing there, two of a kind, a keyring that is locked.
func TestWhatPeopleStore(t *testing.T) {
	r := newGnome(t)
	store := func(text string, attributes ...string) {
		t.Helper()
		if said, err := r.tool(text, append([]string{"store", "--label=of a test"}, attributes...)...); err != nil {
			t.Fatalf("secret-tool: %v: %s", err, said)
		}
	}
	found := func(want string, attributes map[string]string) {
		t.Helper()
		v, err := keyring.Item{Attributes: attributes, Bus: r.bus}.Fetch(t.Context())
		if said := fault.Sentence(err, ""); v.Reveal() != want && (err == nil || !strings.Contains(said, want) || v.Reveal() != "") {
			t.Errorf("%v: %q, %v, and not %q", attributes, v.Reveal(), err, want)
		}
	}
	model := map[string]string{"service": "model"}
	found("the keyring has no item with these attributes", model)
	store("a-secret-of-mine\n", "service", "model", "user", "me")
	found("a-secret-of-mine", model)
	store("a-secret-of-yours", "service", "model", "user", "you")
	found("the keyring has 2 items with these attributes; give more", model)
	found("a-secret-of-yours", map[string]string{"service": "model", "user": "you"})
	if said, err := r.tool("", "clear", "service", "model", "user", "you"); err != nil {
		t.Fatalf("secret-tool: %v: %s", err, said)
	}
	found("a-secret-of-mine", model)
	var locked []dbus.ObjectPath
	var prompt dbus.ObjectPath
	r.call("/org/freedesktop/secrets", "Service.Lock", []any{&locked, &prompt}, []dbus.ObjectPath{login})
	found("the keyring is locked", model)
}
