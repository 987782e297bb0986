package secrets_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
)

// digests is text as lockfiles are full of: hexadecimal and base64 of random bytes, URLs
// with versions, names with scopes.
func digests(size int) string {
	r := rand.New(rand.NewChaCha8([32]byte{1}))
	some := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	var b strings.Builder
	for b.Len() < size {
		version := fmt.Sprintf("%d.%d.%d", r.IntN(20), r.IntN(30), r.IntN(90))
		fmt.Fprintf(&b, "    \"node_modules/@scope/name-%d\": {\n      \"version\": %q,\n      \"resolved\": \"https://packages.example/@scope/name-%d/-/name-%s.tgz\",\n", r.IntN(1000), version, r.IntN(1000), version)
		fmt.Fprintf(&b, "      \"integrity\": \"sha512-%s\"\n    },\n", base64.StdEncoding.EncodeToString(some(64)))
		fmt.Fprintf(&b, "module.example/a/b v%s h1:%s\n", version, base64.StdEncoding.EncodeToString(some(32)))
		fmt.Fprintf(&b, "name==%s \\\n    --hash=sha256:%s\n", version, hex.EncodeToString(some(32)))
		fmt.Fprintf(&b, "  /name@%s(peer@%s):\n    resolution: {integrity: sha1-%s, tarball: https://u.example/%s}\n", version, version, base64.URLEncoding.EncodeToString(some(20)), hex.EncodeToString(some(20)))
		fmt.Fprintf(&b, "%s %d-%02d-%02dT%02d:%02d:%02dZ +0200 %d %s\n", hex.EncodeToString(some(16)), 2026, 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.Uint64(), base64.RawURLEncoding.EncodeToString(some(60)))
	}
	return b.String()
}

// TestNoFalseAlarms: nothing is found in lockfiles, digests and ordinary text. Numbers of
// 16 digits that pass for a card's are what chance makes of so many of them.
func TestNoFalseAlarms(t *testing.T) {
	set := dlp.NewSet(append(secrets.Rules(), personal.Rules()...)...)
	texts := map[string]string{"digests": digests(2 << 20)}
	for _, path := range []string{"go.sum", "bench/go.sum", "tools.sum", "api/openapi.yaml", "docs/threat-model.md", "docs/policy.md", "README.md"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(data)
	}
	for name, text := range texts {
		_, found := set.Text(text, dlp.Plan{Secrets: dlp.Report, Personal: dlp.Report})
		for _, f := range found {
			t.Errorf("%s: %s in %q", name, f.Rule, text[max(0, int(f.At)-20):min(len(text), int(f.At)+f.Length+20)])
		}
	}
}
