package config

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/scan"
	"github.com/cofferdam-dev/cofferdam/internal/scan/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/secret"
	"github.com/cofferdam-dev/cofferdam/internal/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/tool/endpoint"
)

// credentialOf has an endpoint's calls carry a declared secret, if its declaration names the
// endpoint's host. Nothing is fetched before the first call.
func credentialOf(name, address string, declared []secret.Declared) (func(ctx context.Context) (endpoint.Credential, error), error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if ip := net.ParseIP(host); u.Scheme != "https" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("the secret %s would go to %s in the clear; only an endpoint of https, or of this machine, gets one", name, host)
	}
	broker := secret.NewBroker(declared, time.Now)
	d, err := broker.Find(name, host)
	if err != nil {
		return nil, err
	}
	how := d.How
	if how.Sign != "" {
		return nil, fmt.Errorf("the secret %s signs requests, and calls of tools are not signed", name)
	}
	if len(how.Where) > 0 { // of a placeholder, which the daemon has none of
		if how, err = exchange.NewManner(exchange.Manner{Header: cmp.Or(how.Header, "Authorization")}); err != nil {
			return nil, err
		}
	}
	lease := broker.Lease()
	return func(ctx context.Context) (endpoint.Credential, error) {
		v, err := lease.Value(ctx, name, host)
		if err != nil {
			return endpoint.Credential{}, err
		}
		return endpoint.Credential{Header: how.Header, Value: how.Value(v.Reveal()), Betrayed: finderOf(name, v.Reveal())}, nil
	}, nil
}

// finderOf finds a secret in an answer, in the forms in which it can stand there.
func finderOf(name, value string) func(answer []byte) bool {
	var rules []scan.Rule
	for _, form := range exchange.Forms(value) {
		if rule, ok := secrets.Literal(name, form); ok {
			rules = append(rules, rule)
		}
	}
	set := scan.NewSet(rules...)
	return func(answer []byte) bool {
		_, found := set.Text(string(answer), scan.Plan{Secrets: scan.Redact})
		return len(found) > 0
	}
}
