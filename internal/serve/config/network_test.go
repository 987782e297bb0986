package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestNetworkHosts(t *testing.T) {
	c, err := load(t, `
network:
  hosts:
    - { name: api.corp.example, address: "10.1.2.3:8443", port: 443 }
    - { name: "*.corp.example", private: true }
`)
	hosts, hostsErr := c.Network.Outbound(nil)
	if err != nil || hostsErr != nil || len(hosts) != 2 || hosts[0].Address.String() != "10.1.2.3:8443" || !hosts[1].Private {
		t.Fatalf("%+v %v %v", hosts, err, hostsErr)
	}
	for text, want := range map[string]string{
		"network: { hosts: [ { name: a.example } ] }":                                 "network.hosts[0] has neither",
		"network: { hosts: [ { name: a.example, address: 169.254.169.254 } ] }":       "network.hosts[0].address is 169.254.169.254",
		"network: { hosts: [ { name: A.example, address: 10.0.0.1 } ] }":              "network.hosts[0].name is",
		"network: { hosts: [ { name: a.example, address: b.example } ] }":             "network.hosts[0].address is",
		"network: { hosts: [ { name: a.example, address: 10.0.0.1, port: 99999 } ] }": "network.hosts[0].port is",
		"network: { allow: [ a.example ] }":                                           "allow",
	} {
		if _, err := load(t, text); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
