package guest

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// TestTrustAnew: the bundle has the template's roots and what was told last; what is no
// certificate changes nothing.
func TestTrustAnew(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	system := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a root")})
	path := filepath.Join(root, systemBundles()[0])
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, system, 0o600); err != nil {
		t.Fatal(err)
	}
	a := New(Config{Root: root})
	if err := a.writeTrust([]byte(testCA)); err != nil {
		t.Fatal(err)
	}
	later := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a later one")})
	if err := a.trustCA(&channel.Trust{CAPEM: later}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []*channel.Trust{nil, {}, {CAPEM: []byte("no")}} {
		if err := a.trustCA(bad); err == nil {
			t.Errorf("%+v was trusted", bad)
		}
	}
	both := slices.Concat(system, []byte(oursBegins), later, []byte(oursEnds))
	for path, want := range map[string][]byte{channel.BundleFile: both, systemBundles()[0]: both, channel.CAFile: later} {
		if got, err := os.ReadFile(root + path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %q, want %q (%v)", path, got, want, err)
		}
	}
}
