package config

import (
	"fmt"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/privatefile"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/outbound"
)

// Network is about the names that policies list in network_allowlist. It opens none.
type Network struct {
	// Hosts say where names are, in place of what they resolve to.
	Hosts []NetworkHost `yaml:"hosts"`
}

// NetworkHost is where one name, or all below it, may be. Without it a name is refused
// that has an address which is not public.
type NetworkHost struct {
	// Name is a host, or "*." and one for all below it.
	Name string `yaml:"name"`
	// Address ("address" or "address:port") is dialled instead of what the name resolves
	// to; a private or loopback address is meant then.
	Address string `yaml:"address"`
	// Port is the only one that the address is for; 0: it is for all.
	Port int `yaml:"port"`
	// Private lets the name resolve to private addresses.
	Private bool `yaml:"private"`
	// CAFile has certificates in PEM that its certificate may come from, in place of the
	// system's. It counts where the gateway ends TLS.
	CAFile string `yaml:"ca_file"`
}

// Outbound are the hosts as the gateway takes them. Certificates where a sandbox may write, or could, are
// refused.
func (n Network) Outbound(trees []hostpath.Tree) ([]outbound.Host, error) {
	var hosts []outbound.Host
	for i, h := range n.Hosts {
		var ca []byte
		if h.CAFile != "" {
			file, err := privatefile.ReadTrusted("the CA file of "+h.Name, h.CAFile, mostRoots, trees)
			if err != nil {
				return nil, fmt.Errorf(".hosts[%d].ca_file: %w", i, err)
			}
			ca = file.Data
		}
		host, err := outbound.NewHost(h.Name, h.Address, h.Port, h.Private, ca)
		if err != nil {
			return nil, fmt.Errorf(".hosts[%d]%w", i, err)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}
