package receipt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

const (
	// connectLimit is how long connecting to a mail server may take, and then again its greeting,
	// encryption and login.
	connectLimit = 15 * time.Second
	// mailLimit is how long a mail may take, the final reply included. RFC 5321 allows minutes for
	// that reply, but stopping a relay waits for it too, and a mail whose reply comes too late is
	// not sent again.
	mailLimit = 30 * time.Second
	// quitLimit is how long the reply to QUIT may take, which changes nothing.
	quitLimit = time.Second
	// replyMax is how many bytes are read from a mail server in a conversation: real ones send a
	// few kilobytes.
	replyMax = 1 << 20
)

// envelope is a mail with its addresses as they go over the wire.
type envelope struct {
	from, to string
	message  []byte // with CRLF
}

// answer is the result of an attempt. Its state is pending when the mail server is known not to
// have taken the mail.
type answer struct {
	state  string
	code   int16 // the mail server's last reply; 0: none
	reason string
	away   bool // no mail server opened a session, which has nothing to do with this mail
}

// send has one conversation about one mail. It never begins a second one, and neither does the
// library, which has one address here and no retries.
//
// Until the final dot is sent the mail server has nothing that it could deliver, whatever else went
// wrong: by RFC 5321 (3.8) it discards what an ended connection had begun. From then on only its
// reply says whether it took the mail.
func (s Server) send(ctx context.Context, e envelope) answer {
	c, err := s.connect(ctx, e)
	if err != nil {
		a := replied(err)
		a.state, a.away = statePending, true // whatever the server said, it was not about the mail
		return a
	}
	defer c.conn.Close() //nolint:errcheck // nothing more is read
	deadline := time.Now().Add(mailLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.conn.SetDeadline(deadline) // fails only for a closed connection
	a := c.hand(e)
	if a.code != 0 {
		// QUIT is sent only after a reply. Otherwise the library would first write the final dot of
		// a mail that it has begun.
		c.quit()
	}
	return a
}

// hand sends the mail in an open session.
func (c session) hand(e envelope) answer {
	if utf8, _ := c.smtp.Extension("SMTPUTF8"); !ascii(e.to) && !utf8 {
		return answer{
			state:  stateRefused,
			reason: "the mail server takes no addresses with other than ASCII characters before the @",
		}
	}
	if err := c.smtp.Mail("<" + e.from + ">"); err != nil {
		a := replied(err)
		// The fault is in the sender, the login or TLS, which an operator can fix; the mail can
		// still be sent.
		a.state, a.away = statePending, true
		return a
	}
	if err := c.smtp.Rcpt("<" + e.to + ">"); err != nil {
		return replied(err)
	}
	w, err := c.smtp.Data()
	if err != nil {
		return replied(err)
	}
	if _, err := w.Write(e.message); err != nil {
		return answer{state: statePending, reason: err.Error()}
	}
	if err := w.Close(); err != nil {
		a := replied(err)
		if a.code == 0 {
			a.state = stateUnknown
		}
		return a
	}
	return answer{state: stateSent, code: 250}
}

// replied turns an error of a conversation into an answer: 5xx refuses permanently, 4xx refuses for
// now, and anything else is no reply.
func replied(err error) answer {
	a := answer{state: statePending, reason: err.Error()}
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 400 && reply.Code <= 599 {
		a.code = int16(reply.Code)
		// The server's own words, without textproto's quoting.
		a.reason = strings.ReplaceAll(a.reason, reply.Error(),
			fmt.Sprintf("%d %s", reply.Code, strings.Join(strings.Fields(reply.Msg), " ")))
		if reply.Code >= 500 {
			a.state = stateRefused
		}
	}
	return a
}

// session is an open session with a mail server.
type session struct {
	conn net.Conn
	smtp *smtp.Client
}

func (c session) quit() {
	_ = c.conn.SetDeadline(time.Now().Add(quitLimit))
	_ = c.smtp.Quit()
}

// connect connects, encrypts and authenticates.
func (s Server) connect(ctx context.Context, e envelope) (*session, error) {
	var c session
	config := &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := s.dial(ctx, network, s.String())
		if err != nil {
			return nil, err
		}
		c.conn = conn // closed here, because the library leaves it open when something fails later
		bounded := &boundedConn{Conn: conn, left: replyMax}
		if !s.tls {
			return bounded, nil
		}
		secure := tls.Client(bounded, config)
		return secure, secure.HandshakeContext(ctx)
	}
	options := []gomail.Option{
		gomail.WithTimeout(connectLimit), gomail.WithDialContextFunc(dial),
		gomail.WithTLSConfig(config),
	}
	switch {
	case s.tls:
		options = append(options, gomail.WithSSL())
	case s.local():
		// Mail servers on the same machine have self-signed certificates, and nobody is in between.
		startTLS := config.Clone()
		startTLS.InsecureSkipVerify = true
		options = append(options, gomail.WithTLSConfig(startTLS),
			gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case s.user != "":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	}
	if s.user != "" {
		options = append(options, gomail.WithUsername(s.user), gomail.WithPassword(s.password),
			gomail.WithOpportunisticSMTPAuth(s.mechanisms()...))
	}
	if ascii(e.to) {
		// Needlessly asked for, it makes a mail undeliverable to servers further on.
		options = append(options, gomail.WithoutSMTPUTF8())
	}
	client, err := gomail.NewClient(s.host, options...)
	if err != nil {
		return nil, err
	}
	if c.smtp, err = client.DialToSMTPClientWithContext(ctx); err != nil {
		if c.conn != nil {
			_ = c.conn.Close()
		}
		return nil, err
	}
	return &c, nil
}

// mechanisms returns the ways to authenticate, the preferred first. Those that send the password
// need an encrypted connection, except between processes of one machine.
func (s Server) mechanisms() []gomail.SMTPAuthType {
	if s.local() {
		return []gomail.SMTPAuthType{
			gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc,
			gomail.SMTPAuthCramMD5,
		}
	}
	return []gomail.SMTPAuthType{
		gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
		gomail.SMTPAuthCramMD5,
	}
}

var errRepliesTooLong = errors.New("the mail server says more than a mail server does")

// boundedConn ends a connection whose other side sends too much.
type boundedConn struct {
	net.Conn
	left int
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errRepliesTooLong
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
