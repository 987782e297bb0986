package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// through opens a connection to a gateway or proxy: to ADDRESS in the clear, or
// for "tls:NAME" with TLS to port 443 of a registry's name.
func through(address string) (net.Conn, error) {
	name, secure := strings.CutPrefix(address, "tls:")
	if !secure {
		return dial("tcp", address)
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(name, "443"), attemptTimeout)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if ca, err := os.ReadFile("/run/cofferdam/tls/ca.pem"); err == nil {
		roots.AppendCertsFromPEM(ca)
	}
	session := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: name, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	_ = conn.SetDeadline(time.Now().Add(2 * attemptTimeout))
	return session, session.Handshake()
}

// proxy ADDRESS FORM TARGET TOKEN: have a gateway fetch what it should not, by
// CONNECT, an absolute URL, a Host header, headers of proxies, or SOCKS.
func proxy(args []string) error {
	conn, err := through(args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	want, token := args[2], args[3]
	plain := "GET /" + token + " HTTP/1.1\r\nHost: " + want + "\r\nConnection: close\r\n"
	var request string
	switch args[1] {
	case "connect":
		request = "CONNECT " + want + " HTTP/1.1\r\nHost: " + want + "\r\n\r\n" + plain + "\r\n"
	case "absolute":
		request = "GET http://" + want + "/" + token + " HTTP/1.1\r\nHost: " + want + "\r\nConnection: close\r\n\r\n"
	case "host":
		request = plain + "\r\n"
	case "forwarded":
		request = strings.Replace(plain, "Host: "+want, "Host: "+strings.TrimPrefix(args[0], "tls:"), 1) +
			"X-Forwarded-Host: " + want + "\r\nForwarded: host=" + want + "\r\nX-Original-URL: http://" + want + "/" + token + "\r\nX-Rewrite-URL: http://" + want + "/\r\n\r\n"
	case "query":
		request = "GET /simple/?url=http://" + want + "/" + token + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(args[0], "tls:") + "\r\nConnection: close\r\n\r\n"
	case "socks":
		host, _, err := net.SplitHostPort(want)
		if err != nil {
			return err
		}
		request = "\x05\x01\x00\x05\x01\x00\x03" + string(rune(len(host))) + host + "\x00\x50" + plain + "\r\n"
	default:
		return fmt.Errorf("no form %q", args[1])
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 4096))
	fmt.Printf("answered %q %v\n", answer, err)
	return nil
}

// https NAME METHOD PATH TOKEN: a request to a registry's name with a body.
func https(args []string) error {
	req, err := http.NewRequest(args[1], "https://"+args[0]+args[2], strings.NewReader(args[3])) // the client's timeout ends it
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", args[3])
	req.Header.Set("X-Data", args[3])
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	fmt.Printf("answered %s %q %v\n", resp.Status, body, err)
	return nil
}

// fetch INDEX PROJECT: install as a client does; the path that must stay open.
func fetch(args []string) error {
	page, err := get("https://"+args[0]+"/simple/"+args[1]+"/", "application/vnd.pypi.simple.v1+json")
	if err != nil {
		return err
	}
	var index struct {
		Files []struct {
			URL    string            `json:"url"`
			Hashes map[string]string `json:"hashes"`
		} `json:"files"`
	}
	if err := json.Unmarshal(page, &index); err != nil {
		return err
	}
	if len(index.Files) == 0 {
		return errors.New("the index lists no file")
	}
	base, err := url.Parse("https://" + args[0] + "/simple/" + args[1] + "/")
	if err != nil {
		return err
	}
	file, err := base.Parse(index.Files[0].URL)
	if err != nil {
		return err
	}
	file.Host = file.Hostname() // the registry of this test listens on a port of its own outside
	data, err := get(file.String(), "*/*")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	if hex.EncodeToString(sum[:]) != index.Files[0].Hashes["sha256"] {
		return errors.New("the file has another digest than the index says")
	}
	fmt.Println("installed", file.Path)
	return nil
}

func get(from, accept string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, from, nil) // the client's timeout ends it
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", from, resp.Status, data)
	}
	return data, err
}
