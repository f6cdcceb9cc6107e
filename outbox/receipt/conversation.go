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
	// connectLimit is how long a mail server has to be connected to, and then again to greet, encrypt and let us in.
	connectLimit = 15 * time.Second
	// mailLimit is how long it has for a mail, its last reply included. RFC 5321 would let it take minutes for that one; but who stops a relay waits for it, too, and
	// a mail whose reply comes too late is not sent again.
	mailLimit = 30 * time.Second
	// quitLimit is how long it has to say good-bye, which changes nothing.
	quitLimit = time.Second
	// replyMax bounds what is read of a mail server in a conversation: real ones say some kilobytes.
	replyMax = 1 << 20
)

// envelope is a mail and where it goes; the addresses are as they go over the wire.
type envelope struct {
	from, to string
	message  []byte // with CRLF
}

// answer is what came of an attempt. pending: the mail server is known not to have taken the mail.
type answer struct {
	state  string
	code   int16 // the mail server's last reply; 0: none
	reason string
	away   bool // there was no mail server that deals with us, whatever the mail
}

// send has one conversation about one mail. It never begins a second one, nor does the library below it, which knows one address and no retries here.
//
// As long as the final dot is not on its way, the mail server has nothing that it could deliver, whatever else went wrong: RFC 5321 has it forget what a connection
// that ends had begun (3.8). From then on only its reply tells.
func (s Server) send(ctx context.Context, e envelope) answer {
	c, err := s.connect(ctx, e)
	if err != nil {
		a := replied(err)
		a.state, a.away = statePending, true // whatever it said, it was not about the mail
		return a
	}
	defer c.conn.Close() //nolint:errcheck // nothing more is to be heard
	deadline := time.Now().Add(mailLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	_ = c.conn.SetDeadline(deadline) // fails for closed connections only
	a := c.hand(e)
	if a.code != 0 {
		// Not after anything else: before its next command the library writes the final dot of a mail that it has begun.
		c.quit()
	}
	return a
}

// hand hands the mail over.
func (c talk) hand(e envelope) answer {
	if utf8, _ := c.smtp.Extension("SMTPUTF8"); !ascii(e.to) && !utf8 {
		return answer{state: stateRefused, reason: "the mail server takes no addresses with other than ASCII characters before the @"}
	}
	if err := c.smtp.Mail("<" + e.from + ">"); err != nil {
		a := replied(err)
		a.state, a.away = statePending, true // it is about the sender, the login, or TLS: ours to mend, and the mail is as good as before
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

// replied reads an error of a conversation: 5xx is a no for ever, 4xx a no for now, and anything else no reply.
func replied(err error) answer {
	a := answer{state: statePending, reason: err.Error()}
	var reply *textproto.Error
	if errors.As(err, &reply) && reply.Code >= 400 && reply.Code <= 599 {
		a.code = int16(reply.Code)
		a.reason = strings.ReplaceAll(a.reason, reply.Error(), fmt.Sprintf("%d %s", reply.Code, strings.Join(strings.Fields(reply.Msg), " "))) // as it was said
		if reply.Code >= 500 {
			a.state = stateRefused
		}
	}
	return a
}

// talk is a conversation with a mail server that let us in.
type talk struct {
	conn net.Conn
	smtp *smtp.Client
}

func (c talk) quit() {
	_ = c.conn.SetDeadline(time.Now().Add(quitLimit))
	_ = c.smtp.Quit()
}

// connect connects, encrypts and authenticates. Errors: whatever is in the way.
func (s Server) connect(ctx context.Context, e envelope) (*talk, error) {
	var c talk
	config := &tls.Config{ServerName: s.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := s.dial(ctx, network, s.String())
		if err != nil {
			return nil, err
		}
		c.conn = conn // ours to close: the library leaves it open when something fails later
		bounded := &boundedConn{Conn: conn, left: replyMax}
		if !s.tls {
			return bounded, nil
		}
		secure := tls.Client(bounded, config)
		return secure, secure.HandshakeContext(ctx)
	}
	options := []gomail.Option{gomail.WithTimeout(connectLimit), gomail.WithDialContextFunc(dial), gomail.WithTLSConfig(config)}
	switch {
	case s.tls:
		options = append(options, gomail.WithSSL())
	case s.local():
		// Mail servers of one machine have certificates that nobody signed, and nobody is in between.
		startTLS := config.Clone()
		startTLS.InsecureSkipVerify = true
		options = append(options, gomail.WithTLSConfig(startTLS), gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case s.user != "":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	}
	if s.user != "" {
		options = append(options, gomail.WithUsername(s.user), gomail.WithPassword(s.password), gomail.WithOpportunisticSMTPAuth(s.mechanisms()...))
	}
	if ascii(e.to) {
		options = append(options, gomail.WithoutSMTPUTF8()) // asked for without need, it makes a mail undeliverable to servers behind
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

// mechanisms are the ways to authenticate, the preferred first. Those that tell the password are for encrypted connections; between processes of one machine they may
// go without.
func (s Server) mechanisms() []gomail.SMTPAuthType {
	if s.local() {
		return []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc, gomail.SMTPAuthCramMD5}
	}
	return []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5}
}

var errTalksTooMuch = errors.New("the mail server says more than a mail server does")

// boundedConn ends a connection whose other side talks without end.
type boundedConn struct {
	net.Conn
	left int
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTalksTooMuch
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}
