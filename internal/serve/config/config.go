package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// DefaultGatewayUID is the gateway's own user when no name is configured: a
// number above all ranges that distributions, systemd and subordinate ids
// hand out, so that it is nobody else's.
const DefaultGatewayUID = 1879200001

// Config is the configuration file, see Paths.File. Its zero value is
// usable; Load fills in the defaults.
type Config struct {
	// DefaultTemplate is what `run` uses without --template: a template's name, or
	// "auto", which is debian where it is built and else host; auto.
	DefaultTemplate string `yaml:"default_template"`
	// IdleTimeout is how long a daemon that `run` started stays without work; 1m.
	IdleTimeout Duration `yaml:"idle_timeout"`
	// GatewayUID is the numeric user of the gateway; only root's daemon uses it. A number
	// that is nobody else's, 1879200001.
	GatewayUID int `yaml:"gateway_uid"`
	// Runsc is the path of the runsc binary; empty: beside this binary, where
	// `make install` puts it, then PATH.
	Runsc string `yaml:"runsc"`
	// Docker is about the engine docker.
	Docker Docker `yaml:"docker"`
	// GuestKernel is a directory with boot/vmlinuz-RELEASE and lib/modules/RELEASE, as a
	// distribution's package has them, for engines that boot a kernel of their own; empty:
	// the newest of the host's, one made for clouds first.
	GuestKernel string `yaml:"guest_kernel"`
	// MachineMonitor is the path of the program that runs machines with a kernel of their own,
	// a Firecracker or a QEMU; empty: Firecracker where it is installed and KVM proves itself,
	// else QEMU.
	MachineMonitor string `yaml:"machine_monitor"`
	// Upstreams override what discovery finds.
	Upstreams []Upstream `yaml:"upstreams"`
	// Namespaces are names that belong to one upstream.
	Namespaces []Namespace `yaml:"namespaces"`
	// Secrets are those that policies can name in credentials. No sandbox gets one: the
	// gateway puts them into requests to their hosts.
	Secrets []Secret `yaml:"secrets"`
	// Network is about the names that policies list in network_allowlist.
	Network Network `yaml:"network"`
	// Tools are functions of the host that policies can list in tool_allowlist.
	Tools []Tool `yaml:"tools"`
	// ProbeProjects are asked for at start to learn the file hosts.
	ProbeProjects []string `yaml:"probe_projects"`
	// Audit is how the log is kept.
	Audit Audit `yaml:"audit"`
	// Approvals is about the queue of held requests.
	Approvals Approvals `yaml:"approvals"`
	// Freeze is about sandboxes that wait for a person on disk.
	Freeze Freeze `yaml:"freeze"`
	// Snapshots is about copies of sandboxes.
	Snapshots Snapshots `yaml:"snapshots"`
	// Overcommit is about how much sandboxes are promised together.
	Overcommit Overcommit `yaml:"overcommit"`
	// Processes are the limits of the programs that serve sandboxes.
	Processes Processes `yaml:"processes"`
	// Pool is what is kept ready for them.
	Pool []Pool `yaml:"pool"`
	// Images are templates by the names of images for which they stand where a client
	// builds a template from one: with a tag ("python:3"), or for all tags.
	Images map[string]string `yaml:"images"`
	// Listen is where clients with tokens reach the daemon.
	Listen Listen `yaml:"listen"`
	// Telemetry is what leaves the daemon about itself; Log is how it writes what
	// happens to it.
	Telemetry Telemetry `yaml:"telemetry"`
	Log       Log       `yaml:"log"`
}

// Docker is about the engine docker.
type Docker struct {
	// Host is the socket of a Docker daemon on this machine that is root;
	// unix:///var/run/docker.sock.
	Host string `yaml:"host"`
}

func (d Docker) checkKeys() error {
	if socket, ok := strings.CutPrefix(d.Host, "unix://"); d.Host != "" && (!ok || !filepath.IsAbs(socket)) {
		return fault.Invalid(".host is %q and must be the socket of a Docker daemon on this machine, such as unix:///var/run/docker.sock", d.Host)
	}
	return nil
}

// Upstream is one configured registry. Configured ones stand in the place of
// all that discovery would find.
type Upstream struct {
	Ecosystem string `yaml:"ecosystem"` // python, node or go
	// Index is its URL, in which credentials may stand, or "auto": what this
	// machine's own client uses.
	Index  string `yaml:"index"`
	Token  string `yaml:"token"`   // a bearer token, in place of credentials in the URL
	CAFile string `yaml:"ca_file"` // certificates in PEM that its certificate may come from, beside the system's
	Proxy  string `yaml:"proxy"`   // URL of the proxy for it, in which credentials may stand
	// Address ("ip:port") is dialled instead of what the index's name resolves to.
	Address string `yaml:"address"`
	// Log is the verifier ("name+hash+key", or a name that go knows the key of) of
	// the checksum database.
	Log    string `yaml:"log"`
	LogURL string `yaml:"log_url"` // base of the checksum database, if the upstream does not relay it
}

// Auto is the Index of an upstream that is to be discovered.
const Auto = "auto"

// Namespace gives names to one upstream: they are asked of no other.
type Namespace struct {
	Ecosystem string `yaml:"ecosystem"` // python, node or go
	// Pattern is a name, or the beginning of one followed by "*".
	Pattern string `yaml:"pattern"`
	// Upstream is the index of one of the upstreams.
	Upstream string `yaml:"upstream"`
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

func (c Config) checkKeys(trees []hostpath.Tree) error {
	for i, u := range c.Upstreams {
		if err := u.checkKeys(); err != nil {
			return fmt.Errorf("upstreams[%d]%w", i, err)
		}
	}
	for i, n := range c.Namespaces {
		if err := c.checkNamespace(n); err != nil {
			return fmt.Errorf("namespaces[%d]%w", i, err)
		}
	}
	if err := c.Docker.checkKeys(); err != nil {
		return fmt.Errorf("docker%w", err)
	}
	if _, err := c.Network.Outbound(trees); err != nil {
		return fmt.Errorf("network%w", err)
	}
	declared, err := c.DeclaredSecrets(nil)
	if err != nil {
		return err
	}
	if _, err := c.ToolSet(secret.NewBroker(declared, time.Now), nil); err != nil {
		return err
	}
	if err := errors.Join(c.Approvals.checkKeys(), c.Freeze.checkKeys(), c.Snapshots.checkKeys(), c.Overcommit.checkKeys(), c.Processes.checkKeys(), checkPools(c.Pool), checkImages(c.Images)); err != nil {
		return err
	}
	if err := c.Audit.checkKeys(); err != nil {
		return fmt.Errorf("audit%w", err)
	}
	if err := c.Listen.Check(); err != nil {
		return fmt.Errorf("listen%w", err)
	}
	if err := c.Telemetry.checkKeys(); err != nil {
		return fmt.Errorf("telemetry%w", err)
	}
	if err := c.Log.checkKeys(); err != nil {
		return fmt.Errorf("log%w", err)
	}
	if c.GatewayUID < 0 {
		return fmt.Errorf("gateway_uid is %d; it must be a user id above 0", c.GatewayUID)
	}
	return c.checkMachines()
}

// checkImages: an image or a template without a name would stand for nothing.
func checkImages(images map[string]string) error {
	for image, template := range images {
		if image == "" || template == "" {
			return fmt.Errorf("images has the template %q for the image %q; give both a name", template, image)
		}
	}
	return nil
}

// checkMachines wants what machines are made with by absolute paths.
func (c Config) checkMachines() error {
	for key, path := range map[string]string{"guest_kernel": c.GuestKernel, "machine_monitor": c.MachineMonitor} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("%s is %q; it must be an absolute path, since what lies in the directory in which somebody starts the daemon may be anybody's", key, path)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.DefaultTemplate == "" {
		c.DefaultTemplate = "auto"
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = Duration(time.Minute)
	}
	if c.GatewayUID == 0 {
		c.GatewayUID = DefaultGatewayUID
	}
	c.Freeze, c.Snapshots = c.Freeze.withDefaults(), c.Snapshots.withDefaults()
	c.Listen, c.Processes = c.Listen.withDefaults(), c.Processes.withDefaults()
	return c
}
