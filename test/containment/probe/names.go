package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// offered is the name server that this machine is told to use.
func offered() string {
	config, err := dns.ClientConfigFromFile("/etc/resolv.conf")
	if err != nil || len(config.Servers) == 0 {
		return "127.0.0.1:53"
	}
	return net.JoinHostPort(config.Servers[0], config.Port)
}

// ask sends one question. server "" is the offered one.
func ask(server, name, kind, network string) error {
	if server == "" {
		server = offered()
	}
	m := new(dns.Msg)
	m.Id, m.RecursionDesired = dns.Id(), true
	m.Question = []dns.Question{{Name: dns.Fqdn(name), Qtype: dns.StringToType[kind], Qclass: dns.ClassINET}}
	answer, _, err := (&dns.Client{Net: network, Timeout: attemptTimeout}).Exchange(m, server)
	if err != nil {
		return err
	}
	fmt.Println(server, name, kind, dns.RcodeToString[answer.Rcode], answer.Answer)
	return nil
}

// question SERVER NAME TYPE udp|tcp
func question(args []string) error { return ask(args[0], args[1], args[2], args[3]) }

// names COUNT ZONE TOKEN: carry data out as labels, in several types.
func names(args []string) error {
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	kinds := []string{"A", "AAAA", "TXT", "NULL", "ANY", "MX", "CNAME"}
	var all error
	for i := range count {
		label := make([]byte, 12)
		_, _ = rand.Read(label) // it never fails
		name := hex.EncodeToString(label) + "." + args[2] + "." + args[1]
		all = errors.Join(all, ask("", name, kinds[i%len(kinds)], "udp"))
	}
	return all
}

// connect NAME PORT TOKEN: resolve as programs do, then connect.
func connect(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(args[0], args[1]))
	if err != nil {
		return err
	}
	return say(conn, args[2])
}

// rewrite SERVER NAME ADDRESS TOKEN: point the resolver elsewhere and give a
// name an address, then use both.
func rewrite(args []string) error {
	failed := errors.Join(
		os.WriteFile("/etc/resolv.conf", []byte("nameserver "+args[0]+"\n"), 0o644),
		appendTo("/etc/hosts", args[2]+" "+args[1]+"\n"),
	)
	resolved := ask("", args[3]+".rewritten.test", "A", "udp")
	return errors.Join(failed, resolved, connect([]string{args[1], "443", args[3]}))
}

func appendTo(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.TrimRight(string(old), "\n")+"\n"+text), 0o644)
}
