package config

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

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
		return endpoint.Credential{Header: how.Header, Value: how.Value(v.Reveal()), Betrayed: betrayed(lease, name)}, nil
	}, nil
}

// betrayed tells whether an answer has any value of a secret that was had until the answer was
// whole: another call may have brought the endpoint a newer one meanwhile.
func betrayed(lease *secret.Lease, name string) func(answer []byte) bool {
	return func(answer []byte) bool {
		had, err := lease.Had(context.Background(), nil) // which fetches none
		if err != nil {
			return true
		}
		var sought []string
		for _, v := range had[name] {
			sought = append(sought, v.Reveal())
		}
		return exchange.Finder(sought...)(answer)
	}
}
