package e2b

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// networkConfig is what a client says of the network: a further restriction of
// what the policy gives.
type networkConfig struct {
	AllowOut           []string       `json:"allowOut"`
	DenyOut            []string       `json:"denyOut"`
	AllowPublicTraffic *bool          `json:"allowPublicTraffic"`
	MaskRequestHost    string         `json:"maskRequestHost"`
	Rules              jsontext.Value `json:"rules"`
	EgressProxy        jsontext.Value `json:"egressProxy"`
	DNSServers         []string       `json:"dnsServers"`
	HTTPSPorts         []int          `json:"httpsPorts"`
	// Of an update only: in a create it stands beside.
	AllowInternetAccess *bool `json:"allow_internet_access"`
}

// narrowing checks it; a nil config says nothing.
func (n *networkConfig) narrowing(internet *bool) (policy.Narrowing, error) {
	if n == nil {
		n = &networkConfig{}
	}
	switch {
	case asksForMore(n.Rules):
		return policy.Narrowing{}, fault.Invalid("network.rules: nothing is injected into requests here, so a rule would not hold")
	case asksForMore(n.EgressProxy):
		return policy.Narrowing{}, fault.Invalid("network.egressProxy: there is no way out of a sandbox that a proxy could be on; only the policy opens names")
	case len(n.DNSServers) > 0:
		return policy.Narrowing{}, fault.Invalid("network.dnsServers: no server of names can be reached from a sandbox; the gateway resolves the names that the policy opens")
	case len(n.HTTPSPorts) > 0:
		return policy.Narrowing{}, fault.Invalid("network.httpsPorts: a sandbox's ports are spoken to in plain HTTP here; have the server inside listen without TLS")
	case n.MaskRequestHost != "":
		return policy.Narrowing{}, fault.Invalid("network.maskRequestHost: the Host header of requests to a sandbox's ports is not rewritten here")
	}
	return policy.NewNarrowing(n.AllowOut, n.DenyOut, internet)
}

// setNetwork replaces what the client gave up: what is left out is given back, as
// far as the policy gives it.
func (c *Control) setNetwork(w http.ResponseWriter, r *keyedRequest) error {
	sb, err := c.ownSandbox(r)
	if err != nil {
		return err
	}
	var body networkConfig
	if err := readJSON(r, &body); err != nil {
		return err
	}
	if body.AllowPublicTraffic != nil && *body.AllowPublicTraffic != publicTraffic(sb.Info().Labels) {
		return fault.Invalid("network.allowPublicTraffic is settled when a sandbox is made")
	}
	narrowing, err := body.narrowing(body.AllowInternetAccess)
	if err != nil {
		return err
	}
	if err := c.cfg.Sandboxes.Narrow(r.Context(), sb.Info().ID, narrowing); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// networkInfo is the network as it really is.
type networkInfo struct {
	AllowOut           []string `json:"allowOut"`
	DenyOut            []string `json:"denyOut"`
	AllowPublicTraffic bool     `json:"allowPublicTraffic"`
}

// effective is what is open of addresses: nothing. The policy opens names,
// which this answer has no field for: allowOut is what a client gave. Registries are no
// part of it: packages come through the gateway, as the policy says.
func effective(labels map[string]string) networkInfo {
	return networkInfo{AllowOut: []string{}, DenyOut: []string{policy.Everything}, AllowPublicTraffic: publicTraffic(labels)}
}

// networkNotes tell a client where it got less than it asked for.
func networkNotes(n policy.Narrowing) []string {
	notes := []string{"network: nothing is open but the names of the policy's network_allowlist, and the package registries, through the gateway and as the policy says"}
	if len(n.Allow) > 0 {
		notes = append(notes, "network: allowOut opens nothing; it can only leave open what the policy gives")
	}
	return notes
}
