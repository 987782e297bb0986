package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// DefaultGatewayUID is the gateway's own user when no name is configured: a
// number above all ranges that distributions, systemd and subordinate ids
// hand out, so that it is nobody else's.
const DefaultGatewayUID = 1879200001

// Config is the configuration file, <state>/config.yaml. Its zero value is
// usable; Load fills in the defaults.
type Config struct {
	// DefaultTemplate is what `run` uses without --template: host or debian.
	DefaultTemplate string `yaml:"default_template"`
	// IdleTimeout is how long a daemon that `run` started stays without work.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// GatewayUID is the numeric user of the gateway; only root's daemon uses it.
	GatewayUID int `yaml:"gateway_uid"`
	// Runsc is the path of the runsc binary; empty: beside this binary, then PATH.
	Runsc string `yaml:"runsc"`
	// Upstreams override what discovery finds.
	Upstreams []Upstream `yaml:"upstreams"`
	// ProbeProjects are asked for at start to learn the file hosts.
	ProbeProjects []string `yaml:"probe_projects"`
}

// Upstream is one configured registry.
type Upstream struct {
	Ecosystem string `yaml:"ecosystem"` // python
	Index     string `yaml:"index"`     // URL; credentials may stand in it
	CAFile    string `yaml:"ca_file"`
	Proxy     string `yaml:"proxy"`
	// Address ("host:port") is dialled instead of what the index's name resolves to.
	Address string `yaml:"address"`
}

// Duration is a time.Duration written as "90s" or "5m".
type Duration time.Duration

// UnmarshalYAML parses the text form.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v <= 0 {
		return fmt.Errorf("line %d: %q is not a duration such as 90s or 5m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// Load reads the file; a missing one gives the defaults. A wrong one is
// fault.ErrInvalid with file and line.
func Load(path string) (Config, error) {
	c := Config{}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Config{}, fault.Wrap(fault.ErrInvalid, err, "the configuration file %s can't be read", path)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, fault.Wrap(fault.ErrInvalid, err, "the configuration file %s is wrong", path)
	}
	if err := c.check(); err != nil {
		return Config{}, fault.Wrap(fault.ErrInvalid, err, "the configuration file %s is wrong", path)
	}
	return c.withDefaults(), nil
}

func (c Config) check() error {
	for i, u := range c.Upstreams {
		if u.Ecosystem != "python" {
			return fmt.Errorf("upstreams[%d].ecosystem is %q; this version knows python", i, u.Ecosystem)
		}
		if u.Index == "" {
			return fmt.Errorf("upstreams[%d].index is missing: the URL of the simple index", i)
		}
	}
	if c.GatewayUID < 0 {
		return fmt.Errorf("gateway_uid is %d; it must be a user id above 0", c.GatewayUID)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.DefaultTemplate == "" {
		c.DefaultTemplate = "host"
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = Duration(time.Minute)
	}
	if c.GatewayUID == 0 {
		c.GatewayUID = DefaultGatewayUID
	}
	return c
}
