package stripesim

import (
	"math"
	"strings"
	"time"
)

// listing is a page as Stripe sends it.
type listing struct {
	object, url string
	more        bool
	items       []renderer
	search      bool
	nextPage    string
}

func (l listing) render(e *enc) {
	e.open()
	e.text("object", l.object)
	e.key("data")
	e.b = append(e.b, '[')
	for i, item := range l.items {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		item.render(e)
	}
	e.b = append(e.b, ']', ',')
	e.flag("has_more", l.more)
	if l.search {
		e.opt("next_page", l.nextPage)
	}
	e.text("url", l.url)
	e.close()
}

func (s *Server) listCharges(c *call) answer {
	if bad := c.params.allow("created customer ending_before limit payment_intent starting_after transfer_group", "created expand"); bad != nil {
		return bad.answer()
	}
	st := s.state
	find := func(id string) *position {
		if e := st.charges[id]; e != nil {
			return &e.position
		}
		return nil
	}
	w, bad := c.window("charge", find)
	if bad != nil {
		return bad.answer()
	}
	line := &st.allCharges
	if cust := c.params.get("customer"); cust != "" {
		if line = st.byCustomer[cust]; line == nil {
			line = &timeline[*chargeEntry]{}
		}
	}
	through := c.params.get("payment_intent")
	w.keep = func(i int) bool {
		ch := line.items[i].cur
		return ch.Live == c.live && (through == "" || ch.Intent == through)
	}
	items, more := line.page(w)
	out := listing{object: "list", url: "/v1/charges", more: more}
	for _, e := range items {
		out.items = append(out.items, e.cur)
	}
	return ok(out)
}

// listRefunds lists the refunds of one charge, or all of them when id is empty.
func (s *Server) listRefunds(c *call, id string) answer {
	if bad := c.params.allow("charge created ending_before limit payment_intent starting_after", "created expand"); bad != nil {
		return bad.answer()
	}
	st, line := s.state, &s.state.allRefunds
	if id != "" {
		e := st.charges[id]
		if e == nil || e.cur.Live != c.live {
			return noSuchParam("charge", id, "charge").answer()
		}
		line = &e.refunds
	}
	w, bad := c.window("refund", func(id string) *position {
		if e := st.refunds[id]; e != nil {
			return &e.position
		}
		return nil
	})
	if bad != nil {
		return bad.answer()
	}
	through := c.params.get("payment_intent")
	w.keep = func(i int) bool {
		re := line.items[i].cur
		return re.Live == c.live && (through == "" || re.Intent == through)
	}
	items, more := line.page(w)
	out := listing{object: "list", url: c.path, more: more}
	for _, e := range items {
		out.items = append(out.items, e.cur)
	}
	return ok(out)
}

func (s *Server) listIntents(c *call) answer {
	if bad := c.params.allow("created customer ending_before limit starting_after", "created expand"); bad != nil {
		return bad.answer()
	}
	line := &s.state.allIntents
	w, bad := c.window("payment_intent", func(id string) *position {
		if e := s.state.intents[id]; e != nil {
			return &e.position
		}
		return nil
	})
	if bad != nil {
		return bad.answer()
	}
	cust := c.params.get("customer")
	w.keep = func(i int) bool {
		in := line.items[i].cur
		return in.Live == c.live && (cust == "" || in.Customer == cust)
	}
	items, more := line.page(w)
	out := listing{object: "list", url: "/v1/payment_intents", more: more}
	for _, e := range items {
		out.items = append(out.items, s.state.intentFor(e.cur, c.params.expands("data.latest_charge")))
	}
	return ok(out)
}

func (st *state) showIntent(c *call, id string) answer {
	if bad := c.params.allow("client_secret is_stripe_sdk key", "expand"); bad != nil {
		return bad.answer()
	}
	e := st.intents[id]
	if e == nil || e.cur.Live != c.live {
		return noSuch("payment_intent", id, "intent").answer()
	}
	if bad := e.cur.open(c); bad != nil {
		return bad.answer()
	}
	if c.public {
		return ok(publicIntent{e.cur})
	}
	return ok(st.intentFor(e.cur, c.params.expands("latest_charge")))
}

func (st *state) intentFor(in *intent, expand bool) renderer {
	if latest := st.charges[in.Charge]; expand && latest != nil {
		return expandedIntent{in, latest.cur}
	}
	return in
}

func (s *Server) listCustomers(c *call) answer {
	if bad := c.params.allow("created email ending_before limit starting_after", "created expand"); bad != nil {
		return bad.answer()
	}
	line := &s.state.custOrder
	w, bad := c.window("customer", func(id string) *position {
		for _, e := range line.items {
			if e.cur.ID == id {
				return &e.position
			}
		}
		return nil
	})
	if bad != nil {
		return bad.answer()
	}
	email, filtered := c.params.lookup("email")
	w.keep = func(i int) bool {
		cust := line.items[i].cur
		return cust.Live == c.live && (!filtered || cust.Email == email)
	}
	items, more := line.page(w)
	out := listing{object: "list", url: "/v1/customers", more: more}
	for _, e := range items {
		out.items = append(out.items, e.cur)
	}
	return ok(out)
}

func (s *Server) listEvents(c *call) answer {
	if bad := c.params.allow("created ending_before limit starting_after type", "created expand types"); bad != nil {
		return bad.answer()
	}
	line := &s.state.allEvents
	w, bad := c.window("event", func(id string) *position {
		if e := s.state.events[id]; e != nil {
			return &e.position
		}
		return nil
	})
	if bad != nil {
		return bad.answer()
	}
	kind := c.params.get("type")
	w.keep = func(i int) bool {
		e := line.items[i]
		return e.live == c.live && (kind == "" || kind == e.kind || strings.HasSuffix(kind, ".*") && strings.HasPrefix(e.kind, kind[:len(kind)-1]))
	}
	items, more := line.page(w)
	out := listing{object: "list", url: "/v1/events", more: more}
	for _, e := range items {
		out.items = append(out.items, e)
	}
	return ok(out)
}

// window reads limit, created and the cursors of a list.
func (c *call) window(what string, find func(id string) *position) (window, *apiError) {
	w := window{limit: defaultLimit, from: math.MinInt64, to: math.MaxInt64}
	if n, given, bad := c.params.integer("limit"); bad != nil {
		return w, bad
	} else if given {
		if n < 1 || n > maxListLimit {
			return w, invalid("parameter_invalid_integer", "limit", "Invalid integer: limit must be between 1 and %d.", maxListLimit)
		}
		w.limit = int(n)
	}
	for _, b := range [...]struct {
		name      string
		low, high bool
		step      int64
	}{{"created", true, true, 0}, {"created[gt]", true, false, 1}, {"created[gte]", true, false, 0}, {"created[lt]", false, true, -1}, {"created[lte]", false, true, 0}} {
		n, given, bad := c.params.integer(b.name)
		if bad != nil {
			return w, bad
		}
		if given && b.low {
			w.from = max(w.from, n+b.step)
		}
		if given && b.high {
			w.to = min(w.to, n+b.step)
		}
	}
	after, before := c.params.get("starting_after"), c.params.get("ending_before")
	if after != "" && before != "" {
		return w, invalid("", "", "You cannot use both starting_after and ending_before.")
	}
	if after != "" {
		if w.after = find(after); w.after == nil {
			return w, noSuchParam(what, after, "starting_after")
		}
	}
	if before != "" {
		if w.newerThan = find(before); w.newerThan == nil {
			return w, noSuchParam(what, before, "ending_before")
		}
	}
	return w, nil
}

// searchCharges looks through what the index has seen, which trails what happened by the search
// lag.
func (s *Server) searchCharges(c *call) answer {
	if bad := c.params.allow("limit page query", "expand"); bad != nil {
		return bad.answer()
	}
	terms, bad := parseQuery(c.params.get("query"))
	if bad != nil {
		return bad.answer()
	}
	find := func(string) *position { return nil }
	w, bad := c.window("charge", find)
	if bad != nil {
		return bad.answer()
	}
	if page := c.params.get("page"); page != "" {
		e := s.state.charges[page]
		if e == nil {
			return invalid("", "page", "Invalid page: %s", page).answer()
		}
		w.after = &e.position
	}
	// Created is in whole seconds: a lag of 0 must show the charge of this very second.
	w.to = s.now().Add(-time.Duration(s.lag.Load())).Unix()
	line := &s.state.allCharges
	w.keep = func(i int) bool {
		ch := line.items[i].cur
		return ch.Live == c.live && matchesAll(terms, ch)
	}
	items, more := line.page(w)
	out := listing{object: "search_result", url: "/v1/charges/search", more: more, search: true}
	for _, e := range items {
		out.items = append(out.items, e.cur)
	}
	if more {
		out.nextPage = items[len(items)-1].cur.ID
	}
	return ok(out)
}
