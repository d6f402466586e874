package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/local"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	// Deadline of a call with a single answer. Streams have none: heartbeats tell that they live.
	deadline     = 10 * time.Second
	giveUp       = time.Minute
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
)

// serviceConfig: replicas behind one name share the calls, and what got lost is repeated. Every call of
// the suite may be repeated: what changes something carries a request id or a decision id.
const serviceConfig = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"]}}]
}`

// bearer says with each call who is calling; the token may be renewed meanwhile.
type bearer struct{}

func (bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + os.Getenv("FANGCHENG_TOKEN")}, nil
}

// RequireTransportSecurity is left to dial: without TLS it connects to this host alone.
func (bearer) RequireTransportSecurity() bool { return false }

// dial connects to a service, named by a variable of the environment or else at its usual address.
func dial(service, address string) (*grpc.ClientConn, error) {
	if given := os.Getenv("FANGCHENG_" + service); given != "" {
		address = given
	}
	transport := local.NewCredentials()
	if ca := os.Getenv("FANGCHENG_CA"); ca == "system" {
		transport = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	} else if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("FANGCHENG_CA: %s holds no certificate", ca)
		}
		transport = credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	}
	return grpc.Dial(
		address,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(bearer{}),
		grpc.WithDefaultServiceConfig(serviceConfig),
		// The servers allow a ping each 10 s; who pings more often is cut off.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true,
		}),
	)
}

// problem is a call that was refused or lost.
type problem struct {
	// What went wrong, such as STALE_DECISION: what to decide by. The status where there is none.
	reason  string
	message string
	// What else the reason states, such as table_id of ALREADY_SEATED.
	metadata map[string]string
	// When to ask again, where the service says.
	retryAfter time.Duration
	// It passes by waiting, so that the same request is to be sent again.
	passes bool
}

func (p problem) String() string { return p.reason + ": " + p.message }

func explain(err error) problem {
	told := status.Convert(err)
	found := problem{reason: told.Code().String(), message: told.Message()}
	switch told.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		found.passes = true
	case codes.Internal: // so a proxy ends a stream whose server it has lost
		found.passes = strings.Contains(told.Message(), "RST_STREAM")
	}
	for _, detail := range told.Details() {
		switch detail := detail.(type) {
		case *errdetails.ErrorInfo:
			found.reason, found.metadata = detail.Reason, detail.Metadata
		case *errdetails.RetryInfo:
			delay := detail.RetryDelay
			found.retryAfter = time.Duration(delay.GetSeconds())*time.Second + time.Duration(delay.GetNanos())
		}
	}
	switch found.reason {
	case "READER_TOO_SLOW", "TOO_MANY_CALLS", "TOO_MANY_STREAMS":
		found.passes = true
	case "TOKEN_EXPIRED": // a stream ends with the token that it was opened with; it goes on with another
		found.passes = found.metadata["ended"] == "stream"
	}
	return found
}

// patience waits longer after each break, and gives up when nothing has come for a minute.
type patience struct {
	since time.Time
	pause time.Duration
}

func newPatience() *patience {
	p := &patience{}
	p.alive()
	return p
}

// alive: something has come.
func (p *patience) alive() { p.since, p.pause = time.Now(), firstPause }

// after returns nil when it is time to try again, and the error where it does not pass by waiting.
func (p *patience) after(err error) error {
	told := explain(err)
	if !told.passes || time.Since(p.since) > giveUp {
		return err
	}
	fmt.Printf("connection lost (%s), trying again\n", told)
	// By chance, so that the players of a lost replica do not all come back at once.
	time.Sleep(told.retryAfter + p.pause/2 + time.Duration(rand.Int63n(int64(p.pause/2))))
	if p.pause *= 2; p.pause > longestPause {
		p.pause = longestPause
	}
	return nil
}

// untilKnown sends the same request until its outcome is known: a repeat is answered as the first was.
func untilKnown(call func(context.Context) error) error {
	waiting := newPatience()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		err := call(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if err := waiting.after(err); err != nil {
			return err
		}
	}
}
