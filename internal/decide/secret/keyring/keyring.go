// Package keyring is a source of secrets: the keyring of the user as whom the daemon runs,
// which it asks over the session bus by the interface that desktops share (Secret Service:
// GNOME Keyring, KWallet, KeePassXC). Nobody is prompted, and no bus is started.
package keyring

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The names of the interface.
const (
	service     = "org.freedesktop.secrets"
	object      = dbus.ObjectPath("/org/freedesktop/secrets")
	openSession = "org.freedesktop.Secret.Service.OpenSession"
	searchItems = "org.freedesktop.Secret.Service.SearchItems"
	getSecret   = "org.freedesktop.Secret.Item.GetSecret"
	isLocked    = "org.freedesktop.Secret.Error.IsLocked"
)

// Item is an entry of a keyring, by its attributes. Exactly one has them.
type Item struct {
	Attributes map[string]string
	// Bus is the address of the session bus; "": as the daemon's environment says.
	Bus string
}

// Fetch implements secret.Source.
func (i Item) Fetch(ctx context.Context) (secret.Value, error) {
	address, err := i.address()
	if err != nil {
		return secret.Value{}, err
	}
	bus, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return secret.Value{}, problem(ctx, err, "the session bus does not let the daemon in; the daemon has to run as the user whose keyring it is")
	}
	defer bus.Close() //nolint:errcheck // nothing more was asked of it
	keyring := bus.Object(service, object)
	var said dbus.Variant
	var session dbus.ObjectPath
	if err := keyring.CallWithContext(ctx, openSession, 0, "plain", dbus.MakeVariant("")).Store(&said, &session); err != nil { // the bus is a socket of this user's
		return secret.Value{}, problem(ctx, err, "no keyring answers on the session bus; start one, such as gnome-keyring")
	}
	item, err := i.findItem(ctx, keyring)
	if err != nil {
		return secret.Value{}, err
	}
	var found struct {
		Session     dbus.ObjectPath
		Parameters  []byte
		Value       []byte
		ContentType string
	}
	if err := bus.Object(service, item).CallWithContext(ctx, getSecret, 0, session).Store(&found); err != nil {
		return secret.Value{}, problem(ctx, err, "the keyring does not give the item")
	}
	return secret.Line(string(found.Value))
}

// findItem finds the one item. Its attributes' values are not said: they may be private.
func (i Item) findItem(ctx context.Context, keyring dbus.BusObject) (dbus.ObjectPath, error) {
	var open, locked []dbus.ObjectPath
	err := keyring.CallWithContext(ctx, searchItems, 0, i.Attributes).Store(&open, &locked)
	switch {
	case err != nil:
		return "", problem(ctx, err, "the keyring can't be searched")
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return "", fault.New(fault.ErrUnavailable, "the keyring has %d items with these attributes; give more of them in the configuration", len(open))
	case len(locked) > 0:
		return "", errLocked()
	}
	return "", fault.New(fault.ErrUnavailable, "the keyring has no item with these attributes")
}

func errLocked() error {
	return fault.New(fault.ErrUnavailable, "the keyring is locked; unlock it on this machine, for instance by logging in")
}

// address is that of the session bus. Only sockets of this machine are asked, and none
// that would start a bus.
func (i Item) address() (string, error) {
	address := i.Bus
	if address == "" {
		address = os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); address == "" && filepath.IsAbs(dir) {
		address = "unix:path=" + dbus.EscapeBusAddressValue(filepath.Join(dir, "bus"))
	}
	if !strings.HasPrefix(address, "unix:") || strings.Contains(address, ";") {
		return "", fault.New(fault.ErrUnavailable, "the daemon has no session bus (DBUS_SESSION_BUS_ADDRESS is no socket), and so no keyring: "+
			"run it in the session of the user whose keyring it is, or have the secret in a file")
	}
	return address, nil
}

// problem is a sentence for what went wrong on the bus. Words of its other end are not
// kept, except what kind of error it is.
func problem(ctx context.Context, err error, sentence string) error {
	said, is := errors.AsType[dbus.Error](err)
	switch {
	case ctx.Err() != nil:
		return fault.New(fault.ErrUnavailable, "the keyring does not answer in time")
	case is && said.Name == isLocked:
		return errLocked()
	case is:
		return fault.New(fault.ErrUnavailable, "%s", sentence)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		sentence = "the session bus can't be reached; the daemon has to run in the session of the user whose keyring it is"
	}
	return fault.New(fault.ErrUnavailable, "%s", sentence)
}
