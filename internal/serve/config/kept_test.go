package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAConfigurationWithCredentialsIsItsOwners alone; any other only nobody may write
// but its owner and group.
func TestAConfigurationWithCredentialsIsItsOwners(t *testing.T) {
	t.Parallel()
	const secret, none = "telemetry: { traces: { endpoint: 'http://127.0.0.1:4318', headers: { Authorization: x } } }\n", "default_template: host\n"
	texts := map[string]string{
		"telemetry.traces.headers":  secret,
		"upstreams[0].token":        "upstreams: [ { ecosystem: python, index: 'https://pypi.example/simple/', token: x } ]\n",
		"upstreams[0].index":        "upstreams: [ { ecosystem: python, index: 'https://a:b@pypi.example/simple/' } ]\n",
		"upstreams[0].proxy":        "upstreams: [ { ecosystem: python, index: 'https://pypi.example/simple/', proxy: 'a:b@proxy.example:3128' } ]\n",
		"upstreams[1].proxy":        "upstreams: [ { ecosystem: python, index: auto }, { ecosystem: python, index: 'https://pypi.example/simple/', proxy: 'http://a:b@proxy.example:3128' } ]\n",
		"approvals.webhooks[0].url": "approvals: { webhooks: [ { url: 'https://chat.example/T0/x', format: slack } ] }\n",
		"":                          none,
	}
	for what, text := range texts {
		for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o666} {
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path)
			if good := mode == 0o600 || what == "" && mode != 0o666; good != (err == nil) {
				t.Errorf("%s at %#o: %v", what, mode, err)
			} else if err != nil && (!strings.Contains(err.Error(), "chmod 600") || mode != 0o666 && !strings.Contains(err.Error(), what)) {
				t.Errorf("%s at %#o: %v", what, mode, err)
			}
		}
	}
}
