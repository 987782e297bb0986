package config

import "path/filepath"

// Load reads one file, for tests.
func Load(path string) (Config, error) {
	p := Paths{State: filepath.Dir(path)}
	if filepath.Base(path) != "config.yaml" {
		p.Config = path
	}
	c, _, err := p.Load()
	return c, err
}
