package authority

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func openHosts(t *testing.T) (*Hosts, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "hosts")
	h, err := OpenHosts(dir)
	if err != nil {
		t.Fatal(err)
	}
	return h, dir
}

// ofHosts gives a leaf for a name under the authority of a set of hosts, and its root.
func ofHosts(t *testing.T, h *Hosts, hosts []string, name string) (ca []byte, leaf Leaf) {
	t.Helper()
	ca, err := h.CAPEM(t.Context(), hosts)
	if err != nil {
		t.Fatal(err)
	}
	if leaf, err = h.Leaf(t.Context(), hosts, name); err != nil {
		t.Fatal(err)
	}
	return ca, leaf
}

// hostVisits are what clients take of the authorities of hosts, and what they refuse.
func hostVisits(t *testing.T) []hostVisit {
	t.Helper()
	h, _ := openHosts(t)
	mixed, others := []string{"api.example", "*.any.example"}, []string{"api.example", "files.example"}
	ca, leaf := ofHosts(t, h, mixed, "api.example")
	_, below := ofHosts(t, h, mixed, "a.b.any.example")
	other, _ := ofHosts(t, h, others, "api.example")
	both := []string{"any.example", "*.any.example"}
	bothCA, itself := ofHosts(t, h, both, "any.example")
	_, under := ofHosts(t, h, both, "a.any.example")
	all := []hostVisit{
		{"a host", ca, leaf, "api.example", true},
		{"a host below a star", ca, below, "a.b.any.example", true},
		{"a host with a star beside it", bothCA, itself, "any.example", true},
		{"a host below it", bothCA, under, "a.any.example", true},
		{"the authority of other hosts", other, leaf, "api.example", false},
		{"a name that it has not", ca, leaf, "a.any.example", false},
	}
	set, _, err := setOfHosts(mixed)
	if err != nil {
		t.Fatal(err)
	}
	a, release, err := h.takeAuthority(set)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, host := range []string{"bank.example", "www.api.example", "any.example"} {
		all = append(all, hostVisit{"forged", ca, forge(t, a, host), host, false})
	}
	return all
}

// domainVisits are what clients take of an API that has names of ports below a domain and a
// name of its own there, and of a policy's hosts of which one lies below another's star.
func domainVisits(t *testing.T) []hostVisit {
	t.Helper()
	a, _ := open(t)
	leaf, err := a.Below(t.Context(), []string{"localhost", "127.0.0.1", "api.box.example", "a.deep.box.example", "else.example"}, "box.example")
	if err != nil {
		t.Fatal(err)
	}
	h, _ := openHosts(t)
	hosts := []string{"api.any.example", "*.any.example"}
	ca, itself := ofHosts(t, h, hosts, "api.any.example")
	_, below := ofHosts(t, h, hosts, "v2.api.any.example")
	all := []hostVisit{
		{"a host that lies below a star", ca, itself, "api.any.example", true},
		{"a name below a host that lies below a star", ca, below, "v2.api.any.example", true},
	}
	for _, host := range []string{"localhost", "127.0.0.1", "box.example", "8080-x.box.example", "api.box.example", "a.deep.box.example", "else.example"} {
		all = append(all, hostVisit{"an API with a domain", a.CAPEM(), leaf, host, true})
	}
	for _, host := range []string{"bank.example", "x.localhost", "x.else.example", "abox.example", "127.0.0.2"} {
		all = append(all, hostVisit{"forged beside a domain", a.CAPEM(), forge(t, a, host), host, false})
	}
	return all
}

type hostVisit struct {
	what string
	ca   []byte
	leaf Leaf
	host string
	good bool
}

// TestHostsAreAllThatAnAuthorityIsFor: whoever has a gateway's leaf, or a set's key,
// impersonates its hosts to its sandboxes and nobody else.
func TestHostsAreAllThatAnAuthorityIsFor(t *testing.T) {
	t.Parallel()
	all := slices.Concat(hostVisits(t), domainVisits(t))
	for name, verify := range verifiers() {
		for _, v := range all {
			if err := verify(t, v.ca, v.leaf, v.host); (err == nil) != v.good {
				t.Errorf("%s: %s, %s: %v", name, v.what, v.host, err)
			}
		}
	}
}

// TestLeafOfAHost: it is for one name, for a day, and is given again while it is good for
// long enough; a name that the set does not mean has none.
func TestLeafOfAHost(t *testing.T) {
	t.Parallel()
	h, dir := openHosts(t)
	hosts := []string{"api.example", "*.any.example"}
	ca, leaf := ofHosts(t, h, hosts, "x.any.example")
	cert := parse(t, leaf.ChainPEM)
	if !slices.Equal(cert.DNSNames, []string{"x.any.example"}) || time.Until(cert.NotAfter) > hostLeafLifetime {
		t.Errorf("%v until %s", cert.DNSNames, cert.NotAfter)
	}
	if root := parse(t, ca); !strings.HasPrefix(root.Subject.CommonName, "Cofferdam policy CA 1") {
		t.Error(root.Subject.CommonName)
	}
	again, err := h.Leaf(t.Context(), []string{"*.any.example", "api.example", "api.example"}, "x.any.example")
	if err != nil || string(again.KeyPEM) != string(leaf.KeyPEM) {
		t.Errorf("the same hosts in another order have another leaf: %v", err)
	}
	for _, name := range []string{"any.example", "y.api.example", "bank.example", "xany.example"} {
		if _, err := h.Leaf(t.Context(), hosts, name); !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := h.CAPEM(t.Context(), []string{"one"}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("a name of one label has an authority: %v", err)
	}
	sets, err := os.ReadDir(dir)
	if err != nil || len(sets) != 1 {
		t.Fatalf("%v %v", sets, err)
	}
	checkNoRootKey(t, filepath.Join(dir, sets[0].Name()), ca, leaf)

	later, err := OpenHosts(dir)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := later.CAPEM(t.Context(), hosts); err != nil || string(known) != string(ca) {
		t.Errorf("a later daemon has another authority for them: %v", err)
	}
}

// TestKeptLeafIsNotTooOld: one that is near its end is not given again.
func TestKeptLeafIsNotTooOld(t *testing.T) {
	t.Parallel()
	h, _ := openHosts(t)
	hosts := []string{"api.example"}
	_, leaf := ofHosts(t, h, hosts, "api.example")
	set, _, err := setOfHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	h.leaves.Put(leafKey{set, "api.example"}, keptLeaf{leaf, time.Now().Add(leastLeft - time.Minute)}, 1)
	if _, fresh := ofHosts(t, h, hosts, "api.example"); string(fresh.KeyPEM) == string(leaf.KeyPEM) {
		t.Error("a leaf that ends soon is given again")
	}
}
