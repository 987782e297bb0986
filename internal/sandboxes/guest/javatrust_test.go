package guest

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"
)

// TestJavaHasTheBundle: a template's store for Java has what the bundle has, in the form
// that Java reads; where the template has none, none is made.
func TestJavaHasTheBundle(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	store := filepath.Join(root, javaStores()[0])
	system := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("a root")})
	for path, content := range map[string][]byte{filepath.Join(root, systemBundles()[0]): system, store: []byte("before")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := New(Config{Root: root}).writeTrust([]byte(testCA)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	ours, _ := pem.Decode([]byte(testCA))
	for _, want := range [][]byte{[]byte("a root"), ours.Bytes} {
		if !bytes.Contains(got, append(binary.BigEndian.AppendUint32([]byte("X.509"), uint32(len(want))), want...)) {
			t.Errorf("the store lacks %.20q", want)
		}
	}
	begins := []byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 6, 'r', 'o', 'o', 't', '-', '0'}
	said, sum := got[:max(0, len(got)-sha1.Size)], got[max(0, len(got)-sha1.Size):]
	want := sha1.Sum(append([]byte("\x00c\x00h\x00a\x00n\x00g\x00e\x00i\x00tMighty Aphrodite"), said...))
	if !bytes.HasPrefix(got, begins) || !bytes.Equal(sum, want[:]) {
		t.Errorf("the store is none: %.40q", got)
	}
	if _, err := os.Stat(filepath.Join(root, javaStores()[1])); err == nil {
		t.Error("a store was made where the template has none")
	}
}
