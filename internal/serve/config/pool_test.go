package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPools(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]string{
		"pool: [ { template: debian, policy: strict, size: 4 }, { size: 1 } ]": "",
		"pool: [ { template: debian } ]":                                       "pool[0].size is 0",
		"pool: [ { size: 1 }, { size: 1001 } ]":                                "pool[1].size is 1001",
		"pool: [ { size: 1, wire: rest } ]":                                    `pool[0].wire is "rest"`,
		"pool: [ { sise: 1 } ]":                                                "sise",
		"pool: 4":                                                              "line 1",
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path)
		switch {
		case wrong == "" && (err != nil || len(c.Pool) != 2 || c.Pool[0] != Pool{Template: "debian", Policy: "strict", Size: 4}):
			t.Errorf("%s: %+v, %v", text, c.Pool, err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %v, want an error with %q", text, err, wrong)
		}
	}
}
