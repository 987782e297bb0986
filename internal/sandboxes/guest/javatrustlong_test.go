//go:build long

package guest

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestJavaReadsItsStore: a real Java believes a server by the store, without a password,
// and not by its own.
func TestJavaReadsItsStore(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	store := filepath.Join(t.TempDir(), "cacerts")
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(store, javaStore(bundle), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{"404": {"-Djavax.net.ssl.trustStore=" + store}, "refused": nil} {
		cmd := exec.CommandContext(t.Context(), "java", append(args, filepath.Join("testdata", "Status.java"), server.URL)...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("with %q Java says %s %v, want %s (scripts/deps long installs it)", args, out, err, want)
		}
	}
}
