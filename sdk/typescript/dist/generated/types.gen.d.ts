export type ClientOptions = {
    baseUrl: `${string}://${string}` | (string & {});
};
/**
 * At least one of `customer` and `source` is required.
 */
export type ChargeParams = {
    /**
     * In minor units of the currency: 2000 is $20.00 or ¥2000. At most 99999999, and more in six currencies: 12 digits in
     * `idr` and `lbp`, 10 in `cop`, `huf` and `jpy`, 9 in `inr`. The provider may have a higher minimum.
     *
     */
    amount: number;
    /**
     * The ISO 4217 code, in upper or lower case; answers have it in lower case.
     */
    currency: string;
    /**
     * A customer of the payment provider. Without `source`, the customer's default pays.
     *
     */
    customer?: string;
    /**
     * A token of the payment provider; with `customer`, one of the customer's cards (`card_…`, `src_…`, `pm_…`). Card
     * numbers are refused and not stored.
     *
     */
    source?: string;
    /**
     * `false` authorises only.
     */
    capture?: boolean;
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * Your own pairs of text: keys of 1 to 40 characters without square brackets, values of up to 500 characters. At most
     * 45, since the provider keeps 50 and five are Paidonce's own. A number or boolean is taken as the text that it is
     * written as; a pair whose value is empty or null is not kept. In a form, `metadata[order]=6735`, and `metadata=` for
     * no pairs. Keys that begin with `paidonce_` are reserved.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where and to whom the goods are sent, each text of at most 500 characters (at Stripe, 5,000). Empty or null is
     * as if it had been left out. In a form, `shipping[name]=Jenny` and `shipping[address][city]=London`.
     *
     */
    shipping?: {
        /**
         * Where the goods go; at least one of its texts is given.
         */
        address: {
            /**
             * The town or suburb.
             */
            city?: string | null;
            /**
             * The two letters of ISO 3166.
             */
            country?: string | null;
            /**
             * The street and number.
             */
            line1?: string | null;
            /**
             * The floor or flat.
             */
            line2?: string | null;
            /**
             * The ZIP.
             */
            postal_code?: string | null;
            /**
             * The county, province or region.
             */
            state?: string | null;
        };
        /**
         * Who delivers, such as Royal Mail.
         */
        carrier?: string | null;
        /**
         * Who receives the goods.
         */
        name: string;
        /**
         * The receiver's number.
         */
        phone?: string | null;
        /**
         * What the carrier knows it by.
         */
        tracking_number?: string | null;
    } | null;
    /**
     * What the statement shows: 5 to 22 printable ASCII characters with at least one letter, and without angle brackets,
     * backslashes, asterisks and quotation marks. Of a card, the provider shows it in the place of
     * `statement_descriptor_suffix`, unless that is given. Only with `STRIPE_FLOW=charges`: for payment intents with
     * cards, Stripe refuses it.
     *
     */
    statement_descriptor?: string | null;
    /**
     * What the card's statement shows after the operator's name. Printable ASCII without angle brackets, backslashes, asterisks and quotation marks; Stripe refuses it without a letter.
     */
    statement_descriptor_suffix?: string | null;
    /**
     * Where a receipt is sent when the money is taken. The provider sends it, or, if the operator has set up a mail server, this server does, at most once.
     */
    receipt_email?: string | null;
    /**
     * Where the payer comes back to after having authenticated, or not: an address of the web, or of an app such as
     * `shop://paid`. With it, `next_action` has an address to send the payer to. Only with `STRIPE_FLOW=payment_intents`.
     *
     */
    return_url?: string;
    /**
     * `true`: the payer is not there, as with a monthly charge of a stored card. What needs the payer is declined
     * (`authentication_required`) and does not wait. Only with `STRIPE_FLOW=payment_intents`.
     *
     */
    off_session?: boolean;
    /**
     * Your name of what is paid for, such as an order's number: printable characters, compared as they are. At most
     * one live charge has it: one that is pending, or succeeded and neither wholly refunded nor released. The
     * operator can set that a key of `metadata` is the reference of requests that name none.
     *
     */
    reference?: string;
    /**
     * The charge with the same `reference` beside which this one is meant. It must be the newest live charge of the
     * reference, and have succeeded.
     *
     */
    duplicate_of?: string;
    /**
     * What the answer shows in full. In a form, `expand[]=refunds`.
     */
    expand?: Array<ChargeExpand>;
};
/**
 * What to change. Nothing of it moves money.
 */
export type ChargeUpdateParams = {
    /**
     * Your text; empty or null takes it away.
     */
    description?: string | null;
    /**
     * Pairs to add or replace, as for a new charge. An empty value takes its pair away, and null all pairs.
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where this server sends a receipt that is not sent yet, if it mails them; empty or null for nowhere.
     */
    receipt_email?: string | null;
    /**
     * What the answer shows in full. In a form, `expand[]=refunds`.
     */
    expand?: Array<ChargeExpand>;
    /**
     * Where and to whom the goods are sent, as for a new charge, in place of all that there is; empty or null takes it
     * away. The provider keeps what it was sent with the charge.
     *
     */
    shipping?: {
        /**
         * Where the goods go; at least one of its texts is given.
         */
        address: {
            /**
             * The town or suburb.
             */
            city?: string | null;
            /**
             * The two letters of ISO 3166.
             */
            country?: string | null;
            /**
             * The street and number.
             */
            line1?: string | null;
            /**
             * The floor or flat.
             */
            line2?: string | null;
            /**
             * The ZIP.
             */
            postal_code?: string | null;
            /**
             * The county, province or region.
             */
            state?: string | null;
        };
        /**
         * Who delivers, such as Royal Mail.
         */
        carrier?: string | null;
        /**
         * Who receives the goods.
         */
        name: string;
        /**
         * The receiver's number.
         */
        phone?: string | null;
        /**
         * What the carrier knows it by.
         */
        tracking_number?: string | null;
    } | null;
};
/**
 * How much of the authorised payment to take.
 */
export type CaptureParams = {
    /**
     * How much to take, in minor units. By default, all that is authorised.
     */
    amount?: number;
    /**
     * What the answer shows in full. In a form, `expand[]=refunds`.
     */
    expand?: Array<ChargeExpand>;
};
/**
 * What is to be paid, and how. The means of payment may also be named later.
 */
export type PaymentIntentParams = {
    /**
     * In minor units of the currency: 2000 is $20.00 or ¥2000. At most 99999999, and more in six currencies: 12 digits in
     * `idr` and `lbp`, 10 in `cop`, `huf` and `jpy`, 9 in `inr`. The provider may have a higher minimum.
     *
     */
    amount: number;
    /**
     * The ISO 4217 code, in upper or lower case; answers have it in lower case.
     */
    currency: string;
    /**
     * A customer of the payment provider who pays, and for whom the means of payment can be kept.
     */
    customer?: string;
    /**
     * A means of payment of the provider (`pm_…`, `card_…`, `src_…`). Card numbers are refused and not stored.
     */
    payment_method?: string;
    /**
     * `true` charges at once, as `POST /v1/payment_intents/{id}/confirm` does.
     */
    confirm?: boolean;
    /**
     * `automatic` takes the money as soon as it is authorised; `manual` authorises only, until the intent is captured;
     * `automatic_async` is read as `automatic`.
     *
     */
    capture_method?: 'automatic' | 'automatic_async' | 'manual';
    /**
     * Where the payer comes back to after having authenticated, or not: an address of the web, or of an app such as
     * `shop://paid`. Of a new intent, only with `confirm: true`.
     *
     */
    return_url?: string;
    /**
     * `true`: the payer is not there, as with a monthly charge of a stored card. What needs the payer is declined
     * (`authentication_required`) and does not wait. Of a new intent, only with `confirm: true`.
     *
     */
    off_session?: boolean;
    /**
     * `true`: what needs the payer is declined instead of waiting. Of a new intent, only with `confirm: true`.
     */
    error_on_requires_action?: boolean;
    /**
     * Keeps the means of payment for the customer: `on_session` for payments with the payer there, `off_session` also for
     * those without.
     *
     */
    setup_future_usage?: 'on_session' | 'off_session';
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * Your own pairs of text: keys of 1 to 40 characters without square brackets, values of up to 500 characters. At most
     * 45, since the provider keeps 50 and five are Paidonce's own. A number or boolean is taken as the text that it is
     * written as; a pair whose value is empty or null is not kept. In a form, `metadata[order]=6735`, and `metadata=` for
     * no pairs. Keys that begin with `paidonce_` are reserved.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where a receipt is sent when the money is taken. The provider sends it, or, if the operator has set up a mail server, this server does, at most once.
     */
    receipt_email?: string | null;
    /**
     * What the card's statement shows after the operator's name. Printable ASCII without angle brackets, backslashes, asterisks and quotation marks; Stripe refuses it without a letter.
     */
    statement_descriptor_suffix?: string | null;
    /**
     * Your name of what is paid for, such as an order's number: printable characters, compared as they are. At most
     * one live charge has it: one that is pending, or succeeded and neither wholly refunded nor released. The
     * operator can set that a key of `metadata` is the reference of requests that name none.
     *
     */
    reference?: string;
    /**
     * The charge with the same `reference` beside which this one is meant. It must be the newest live charge of the
     * reference, and have succeeded.
     *
     */
    duplicate_of?: string;
    automatic_payment_methods?: AutomaticMethodsParams;
    /**
     * The provider's types of means of payment that the intent takes; not together with `automatic_payment_methods[enabled]`.
     * In a form, `payment_method_types[]=card`.
     *
     */
    payment_method_types?: Array<string>;
    /**
     * What the answer shows in full. In a form, `expand[]=latest_charge`.
     */
    expand?: Array<PaymentIntentExpand>;
};
/**
 * Lets the provider choose the types of means of payment.
 */
export type AutomaticMethodsParams = {
    /**
     * Whether the provider chooses.
     */
    enabled: boolean;
    /**
     * `never`: no means of payment that sends the payer to another site; `always`, the provider's default: any.
     */
    allow_redirects?: 'always' | 'never';
};
/**
 * What to change: of an intent that was paid or canceled only `description`, `metadata` and `receipt_email`.
 */
export type PaymentIntentUpdateParams = {
    /**
     * In minor units of the currency: 2000 is $20.00 or ¥2000. At most 99999999, and more in six currencies: 12 digits in
     * `idr` and `lbp`, 10 in `cop`, `huf` and `jpy`, 9 in `inr`. The provider may have a higher minimum.
     *
     */
    amount?: number;
    /**
     * The ISO 4217 code, in upper or lower case; answers have it in lower case.
     */
    currency?: string;
    /**
     * A customer of the payment provider who pays, and for whom the means of payment can be kept.
     */
    customer?: string;
    /**
     * A means of payment of the provider (`pm_…`, `card_…`, `src_…`). Card numbers are refused and not stored.
     */
    payment_method?: string;
    /**
     * Keeps the means of payment for the customer: `on_session` for payments with the payer there, `off_session` also for
     * those without.
     *
     */
    setup_future_usage?: 'on_session' | 'off_session';
    /**
     * Your text; empty or null takes it away.
     */
    description?: string | null;
    /**
     * Pairs to add or replace, as for a new charge. An empty value takes its pair away, and null all pairs.
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where a receipt is sent when the money is taken; empty or null for nowhere.
     */
    receipt_email?: string | null;
    /**
     * What the card's statement shows after the operator's name, as for a new intent.
     */
    statement_descriptor_suffix?: string;
    /**
     * The provider's types of means of payment that the intent takes; not together with `automatic_payment_methods[enabled]`.
     * In a form, `payment_method_types[]=card`.
     *
     */
    payment_method_types?: Array<string>;
    /**
     * What the answer shows in full. In a form, `expand[]=latest_charge`.
     */
    expand?: Array<PaymentIntentExpand>;
};
/**
 * How to pay, where the intent does not say so already.
 */
export type PaymentIntentConfirmParams = {
    /**
     * A means of payment of the provider (`pm_…`, `card_…`, `src_…`). Card numbers are refused and not stored.
     */
    payment_method?: string;
    /**
     * Where the payer comes back to after having authenticated, or not: an address of the web, or of an app such as
     * `shop://paid`. Of a new intent, only with `confirm: true`.
     *
     */
    return_url?: string;
    /**
     * `true`: the payer is not there, as with a monthly charge of a stored card. What needs the payer is declined
     * (`authentication_required`) and does not wait. Of a new intent, only with `confirm: true`.
     *
     */
    off_session?: boolean;
    /**
     * `true`: what needs the payer is declined instead of waiting. Of a new intent, only with `confirm: true`.
     */
    error_on_requires_action?: boolean;
    /**
     * Keeps the means of payment for the customer: `on_session` for payments with the payer there, `off_session` also for
     * those without.
     *
     */
    setup_future_usage?: 'on_session' | 'off_session';
    /**
     * Where a receipt is sent when the money is taken.
     */
    receipt_email?: string;
    /**
     * What the answer shows in full. In a form, `expand[]=latest_charge`.
     */
    expand?: Array<PaymentIntentExpand>;
};
/**
 * How much of the authorised payment to take.
 */
export type PaymentIntentCaptureParams = {
    /**
     * How much to take, in minor units. By default, all that is authorised.
     */
    amount_to_capture?: number;
    /**
     * What the answer shows in full. In a form, `expand[]=latest_charge`.
     */
    expand?: Array<PaymentIntentExpand>;
};
/**
 * Why nothing is to be paid.
 */
export type PaymentIntentCancelParams = {
    /**
     * Why: `abandoned`, `duplicate`, `fraudulent` or `requested_by_customer`.
     */
    cancellation_reason?: 'abandoned' | 'duplicate' | 'fraudulent' | 'requested_by_customer';
    /**
     * What the answer shows in full. In a form, `expand[]=latest_charge`.
     */
    expand?: Array<PaymentIntentExpand>;
};
/**
 * `requires_payment_method`: it waits for a means of payment, also after a decline; `requires_confirmation`: it can be
 * confirmed; `requires_action`: it waits for the payer; `processing`: the provider works on it; `requires_capture`: the
 * money is authorised; `canceled`: nothing can be charged with it any more; `succeeded`: the money is taken.
 *
 */
export type PaymentIntentStatus = 'requires_payment_method' | 'requires_confirmation' | 'requires_action' | 'processing' | 'requires_capture' | 'canceled' | 'succeeded';
/**
 * A payment intent, with Stripe's names and types.
 */
export type PaymentIntent = {
    /**
     * The provider's id of the payment intent.
     */
    id: string;
    object: 'payment_intent';
    /**
     * Minor units to be paid.
     */
    amount: number;
    /**
     * Minor units that are authorised and can be taken.
     */
    amount_capturable: number;
    /**
     * Minor units taken.
     */
    amount_received: number;
    automatic_payment_methods: AutomaticMethods;
    /**
     * When it was cancelled, in Unix seconds.
     */
    canceled_at: number | null;
    /**
     * Why it was cancelled, if somebody said so.
     */
    cancellation_reason: string | null;
    /**
     * Whether the money is taken as soon as it is authorised (`automatic`, `automatic_async`), or with a capture (`manual`).
     */
    capture_method: 'automatic' | 'automatic_async' | 'manual';
    /**
     * With it, the provider's library in the payer's browser can confirm the intent, and read it. Give it to the payer alone,
     * and keep it out of logs and addresses. Null in events, and for a read-only API key.
     *
     */
    client_secret: string | null;
    confirmation_method: 'automatic';
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * The provider's customer who pays.
     */
    customer: string | null;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    last_payment_error: PaymentError;
    /**
     * The charge of the last attempt, at `/v1/charges`; null before the first.
     */
    latest_charge: string | null;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    next_action: PaymentIntentAction;
    /**
     * The provider's id of the means of payment; after a decline, null.
     */
    payment_method: string | null;
    /**
     * The types of means of payment that it takes: those that the request named, or else those that the provider chose.
     */
    payment_method_types: Array<string>;
    /**
     * Where a receipt goes.
     */
    receipt_email: string | null;
    /**
     * Your name of what is paid for; only if it has one.
     */
    reference?: string;
    /**
     * Whether the means of payment is kept: `on_session` or `off_session`; null: no.
     */
    setup_future_usage: string | null;
    /**
     * What the card's statement shows after the operator's name.
     */
    statement_descriptor_suffix: string | null;
    status: PaymentIntentStatus;
};
/**
 * Whether the provider chooses the types of means of payment; null if the request did not say.
 */
export type AutomaticMethods = {
    /**
     * Whether it does.
     */
    enabled: boolean;
    /**
     * `never`: no means of payment that sends the payer to another site; `always`: any.
     */
    allow_redirects?: string;
} | null;
/**
 * Why the last attempt to pay came to nothing; null if it did not, or there was none.
 */
export type PaymentError = {
    /**
     * The failed charge, at `/v1/charges`, if the provider made one.
     */
    charge?: string;
    /**
     * Why, for programs.
     */
    code?: string;
    /**
     * Why the card's issuer declined, when it says.
     */
    decline_code?: string;
    /**
     * Why, for people.
     */
    message: string;
    /**
     * The parameter at fault.
     */
    param?: string;
    /**
     * The kind of error.
     */
    type: string;
} | null;
/**
 * What the payer has to do before the intent can go on; null if nothing. Events show only what it is, and so do answers to a read-only API key.
 */
export type PaymentIntentAction = {
    /**
     * What to do; the member of the same name has the details.
     */
    type: string;
    /**
     * Where the payer can authenticate.
     */
    redirect_to_url?: {
        /**
         * Where the payer comes back to.
         */
        return_url: string | null;
        /**
         * Where to send the payer.
         */
        url: string;
    };
    /**
     * The provider's library in the payer's browser goes on with the `client_secret` alone (Stripe.js: `handleNextAction`).
     */
    use_stripe_sdk?: {
        [key: string]: string;
    };
} | null;
/**
 * A payment intent with its whole latest charge; only where `expand[]` asks for it.
 */
export type PaymentIntentWithCharge = {
    /**
     * The provider's id of the payment intent.
     */
    id: string;
    object: 'payment_intent';
    /**
     * Minor units to be paid.
     */
    amount: number;
    /**
     * Minor units that are authorised and can be taken.
     */
    amount_capturable: number;
    /**
     * Minor units taken.
     */
    amount_received: number;
    automatic_payment_methods: AutomaticMethods;
    /**
     * When it was cancelled, in Unix seconds.
     */
    canceled_at: number | null;
    /**
     * Why it was cancelled, if somebody said so.
     */
    cancellation_reason: string | null;
    /**
     * Whether the money is taken as soon as it is authorised (`automatic`, `automatic_async`), or with a capture (`manual`).
     */
    capture_method: 'automatic' | 'automatic_async' | 'manual';
    /**
     * With it, the provider's library in the payer's browser can confirm the intent, and read it. Give it to the payer alone,
     * and keep it out of logs and addresses. Null in events, and for a read-only API key.
     *
     */
    client_secret: string | null;
    confirmation_method: 'automatic';
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * The provider's customer who pays.
     */
    customer: string | null;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    last_payment_error: PaymentError;
    latest_charge: Charge;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    next_action: PaymentIntentAction;
    /**
     * The provider's id of the means of payment; after a decline, null.
     */
    payment_method: string | null;
    /**
     * The types of means of payment that it takes: those that the request named, or else those that the provider chose.
     */
    payment_method_types: Array<string>;
    /**
     * Where a receipt goes.
     */
    receipt_email: string | null;
    /**
     * Your name of what is paid for; only if it has one.
     */
    reference?: string;
    /**
     * Whether the means of payment is kept: `on_session` or `off_session`; null: no.
     */
    setup_future_usage: string | null;
    /**
     * What the card's statement shows after the operator's name.
     */
    statement_descriptor_suffix: string | null;
    status: PaymentIntentStatus;
};
/**
 * A page of payment intents, the newest first.
 */
export type PaymentIntentList = {
    object: 'list';
    url: '/v1/payment_intents';
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The payment intents, as `GET /v1/payment_intents/{id}` shows them.
     */
    data: Array<PaymentIntent | PaymentIntentWithCharge>;
};
/**
 * Which charge to refund, and how much. One of `charge` and `payment_intent` is required.
 */
export type RefundParams = {
    /**
     * The charge to refund, by Paidonce's id or the provider's.
     */
    charge?: string;
    /**
     * The payment intent whose charge to refund, instead of `charge`.
     */
    payment_intent?: string;
    /**
     * How much to refund, in minor units. By default, all that is left.
     */
    amount?: number;
    reason?: RefundReason;
    /**
     * Your own pairs of text, as for a charge.
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * What the answer shows in full. In a form, `expand[]=charge`.
     */
    expand?: Array<RefundExpand>;
};
/**
 * `refunds`: the newest refunds of the charge, at most ten. `customer`, `payment_method` and `balance_transaction` are
 * accepted, since Stripe's users name them, and stay ids: the objects are the provider's.
 *
 */
export type ChargeExpand = 'refunds' | 'customer' | 'payment_method' | 'balance_transaction';
/**
 * `data.refunds`: the newest refunds of each charge, at most ten. `data.customer`, `data.payment_method` and
 * `data.balance_transaction` are accepted, and stay ids.
 *
 */
export type ChargeListExpand = 'data.refunds' | 'data.customer' | 'data.payment_method' | 'data.balance_transaction';
/**
 * `latest_charge`: the whole charge instead of its id. `customer`, `payment_method` and `balance_transaction` are
 * accepted, since Stripe's users name them, and stay ids: the objects are the provider's.
 *
 */
export type PaymentIntentExpand = 'latest_charge' | 'customer' | 'payment_method' | 'balance_transaction';
/**
 * `data.latest_charge`: the whole charge of each instead of its id. `data.customer`, `data.payment_method` and
 * `data.balance_transaction` are accepted, and stay ids.
 *
 */
export type PaymentIntentListExpand = 'data.latest_charge' | 'data.customer' | 'data.payment_method' | 'data.balance_transaction';
/**
 * `charge`: the whole charge instead of its id. `customer`, `payment_method` and `balance_transaction` are accepted,
 * since Stripe's users name them, and stay ids: the objects are the provider's.
 *
 */
export type RefundExpand = 'charge' | 'customer' | 'payment_method' | 'balance_transaction';
/**
 * `data.charge`: the whole charge of each instead of its id. `data.customer`, `data.payment_method` and
 * `data.balance_transaction` are accepted, and stay ids.
 *
 */
export type RefundListExpand = 'data.charge' | 'data.customer' | 'data.payment_method' | 'data.balance_transaction';
/**
 * `charge`: the whole charge instead of its id. `customer`, `payment_method` and `balance_transaction` are accepted,
 * since Stripe's users name them, and stay ids: the objects are the provider's.
 *
 */
export type DisputeExpand = 'charge' | 'customer' | 'payment_method' | 'balance_transaction';
/**
 * `data.charge`: the whole charge of each instead of its id. `data.customer`, `data.payment_method` and
 * `data.balance_transaction` are accepted, and stay ids.
 *
 */
export type DisputeListExpand = 'data.charge' | 'data.customer' | 'data.payment_method' | 'data.balance_transaction';
/**
 * Why: `duplicate`, `requested_by_customer`, or `fraudulent`, which the provider uses against fraud.
 */
export type RefundReason = 'duplicate' | 'fraudulent' | 'requested_by_customer';
/**
 * A refund, with Stripe's names and types.
 */
export type Refund = {
    /**
     * Paidonce's id of the refund; later refunds sort after it.
     */
    id: string;
    object: 'refund';
    /**
     * Minor units.
     */
    amount: number;
    /**
     * The charge that is refunded.
     */
    charge: string;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * The charge's, an ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * Why it failed, for programs.
     */
    failure_reason: string | null;
    made_by: RefundMadeBy;
    /**
     * Your own pairs of text; of a refund made at the provider, none.
     */
    metadata: {
        [key: string]: string;
    };
    provider: ProviderReference;
    /**
     * The reason that the request gave, or null.
     */
    reason: string | null;
    status: RefundStatus;
};
/**
 * `api`: a request to this API made it; `provider`: somebody made it at the provider, in its dashboard or with
 * another program. Both count in the charge's `amount_refunded`.
 *
 */
export type RefundMadeBy = 'api' | 'provider';
/**
 * `pending`: no outcome is known yet, or the provider works on it; `requires_action`: it waits for the payer; `succeeded`,
 * which may still become `failed` days later; `failed` and `canceled`: no money was refunded.
 *
 */
export type RefundStatus = 'pending' | 'requires_action' | 'succeeded' | 'failed' | 'canceled';
/**
 * A refund with its whole charge; only where `expand[]` asks for it.
 */
export type RefundWithCharge = {
    /**
     * Paidonce's id of the refund; later refunds sort after it.
     */
    id: string;
    object: 'refund';
    /**
     * Minor units.
     */
    amount: number;
    charge: Charge;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * The charge's, an ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * Why it failed, for programs.
     */
    failure_reason: string | null;
    made_by: RefundMadeBy;
    /**
     * Your own pairs of text; of a refund made at the provider, none.
     */
    metadata: {
        [key: string]: string;
    };
    provider: ProviderReference;
    /**
     * The reason that the request gave, or null.
     */
    reason: string | null;
    status: RefundStatus;
};
/**
 * A page of refunds, the newest first.
 */
export type RefundList = {
    object: 'list';
    url: '/v1/refunds';
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The refunds, as `GET /v1/refunds/{id}` shows them.
     */
    data: Array<Refund>;
};
/**
 * A page of refunds with their whole charges; only where `expand[]` asks for them.
 */
export type RefundListWithCharges = {
    object: 'list';
    /**
     * The path of the list.
     */
    url: string;
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The refunds, as `GET /v1/refunds/{id}` shows them.
     */
    data: Array<RefundWithCharge>;
};
/**
 * A dispute, with Stripe's names and types.
 */
export type Dispute = {
    /**
     * Paidonce's id of the dispute; later disputes sort after it.
     */
    id: string;
    object: 'dispute';
    /**
     * Minor units that are disputed: usually the whole charge.
     */
    amount: number;
    /**
     * The charge that is disputed.
     */
    charge: string;
    /**
     * When it was opened, in Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    evidence_details: EvidenceDetails;
    /**
     * Whether the provider still lets the charge be refunded. If not, a refund is a 400 `charge_disputed`.
     */
    is_charge_refundable: boolean;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * The provider's id of the payment intent, if one made the charge.
     */
    payment_intent: string | null;
    provider: ProviderReference;
    /**
     * The provider's word for why the payer disputes it.
     */
    reason: string;
    /**
     * The provider's word. `needs_response` and `under_review`: it is open; `won` and `lost`: it is decided; `warning_needs_response`,
     * `warning_under_review` and `warning_closed`: an inquiry, which takes no money; `prevented`. There may be new ones.
     *
     */
    status: string;
};
/**
 * A dispute with its whole charge; only where `expand[]` asks for it.
 */
export type DisputeWithCharge = {
    /**
     * Paidonce's id of the dispute; later disputes sort after it.
     */
    id: string;
    object: 'dispute';
    /**
     * Minor units that are disputed: usually the whole charge.
     */
    amount: number;
    charge: Charge;
    /**
     * When it was opened, in Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    evidence_details: EvidenceDetails;
    /**
     * Whether the provider still lets the charge be refunded. If not, a refund is a 400 `charge_disputed`.
     */
    is_charge_refundable: boolean;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * The provider's id of the payment intent, if one made the charge.
     */
    payment_intent: string | null;
    provider: ProviderReference;
    /**
     * The provider's word for why the payer disputes it.
     */
    reason: string;
    /**
     * The provider's word. `needs_response` and `under_review`: it is open; `won` and `lost`: it is decided; `warning_needs_response`,
     * `warning_under_review` and `warning_closed`: an inquiry, which takes no money; `prevented`. There may be new ones.
     *
     */
    status: string;
};
/**
 * Until when evidence is accepted, and what was sent.
 */
export type EvidenceDetails = {
    /**
     * Until when evidence is accepted, in Unix seconds; null if none is.
     */
    due_by: number | null;
    /**
     * Whether there is evidence.
     */
    has_evidence: boolean;
    /**
     * Whether the last evidence came too late.
     */
    past_due: boolean;
    /**
     * How often evidence was sent.
     */
    submission_count: number;
};
/**
 * A page of disputes, the newest first.
 */
export type DisputeList = {
    object: 'list';
    url: '/v1/disputes';
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The disputes, as `GET /v1/disputes/{id}` shows them.
     */
    data: Array<Dispute>;
};
/**
 * A page of disputes with their whole charges; only where `expand[]` asks for them.
 */
export type DisputeListWithCharges = {
    object: 'list';
    url: '/v1/disputes';
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The disputes, as `GET /v1/disputes/{id}` shows them.
     */
    data: Array<DisputeWithCharge>;
};
/**
 * A card network's warning that a charge was fraudulent, with Stripe's names and types. It is only in events.
 */
export type EarlyFraudWarning = {
    /**
     * The provider's id of the warning.
     */
    id: string;
    object: 'radar.early_fraud_warning';
    /**
     * Whether a refund can still prevent a dispute.
     */
    actionable: boolean;
    /**
     * The charge that it warns of.
     */
    charge: string;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * The card network's word.
     */
    fraud_type: string;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * The provider's id of the payment intent, if one made the charge.
     */
    payment_intent: string | null;
    provider: ProviderReference;
};
/**
 * An event of Stripe. Only these members are read, to find the object that it is about.
 */
export type StripeEvent = {
    /**
     * The id under which an event is stored once.
     */
    id: string;
    object: 'event';
    /**
     * What happened; events of types that are not handled here are only stored.
     */
    type: string;
    /**
     * `true`: real money; anything else: test money.
     */
    livemode?: boolean | null;
    /**
     * What the event is about.
     */
    data?: {
        /**
         * The provider's object, of which only the id is used.
         */
        object?: {
            /**
             * The id of the object that the event is about.
             */
            id?: string | null;
        } | null;
    } | null;
};
/**
 * The event was accepted.
 */
export type Received = {
    received: true;
};
/**
 * `pending`: no outcome is known yet; `succeeded`; `failed`: declined, refused, or proven not to have been made.
 */
export type ChargeStatus = 'pending' | 'succeeded' | 'failed';
/**
 * A charge, with Stripe's names and types.
 */
export type Charge = {
    /**
     * Paidonce's id of the charge; later charges sort after it.
     */
    id: string;
    object: 'charge';
    /**
     * Minor units.
     */
    amount: number;
    /**
     * Minor units taken.
     */
    amount_captured: number;
    /**
     * Minor units given back; all of it, if the authorised money was let go of.
     */
    amount_refunded: number;
    /**
     * Whether the money was taken, rather than only authorised.
     */
    captured: boolean;
    /**
     * Unix seconds.
     */
    created: number;
    /**
     * An ISO 4217 code in lower case.
     */
    currency: string;
    /**
     * The provider's id of the entry in its books; null until there is one.
     */
    balance_transaction?: string | null;
    /**
     * The provider's customer who pays; null when a source does.
     */
    customer: string | null;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    dispute?: Dispute;
    /**
     * Whether any dispute of it is open: `GET /v1/disputes?charge=`.
     */
    disputed: boolean;
    /**
     * Why it failed, for programs.
     */
    failure_code: string | null;
    /**
     * Why it failed, for people.
     */
    failure_message: string | null;
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    next_action?: NextAction;
    outcome: ChargeOutcome;
    payment_method_details?: PaymentMethodDetails;
    /**
     * Where the payer can see a receipt; null where the provider has none. Whoever has the address can see it, so keep it from
     * logs. It is the first one that the provider gave; at Stripe an address ends after 30 days, and then offers a new one.
     *
     */
    receipt_url?: string | null;
    /**
     * Whether the payment succeeded, or was authorised.
     */
    paid: boolean;
    /**
     * The provider's id of the payment intent that made the charge, also of one by `STRIPE_FLOW=payment_intents`; null: none did.
     */
    payment_intent?: string | null;
    provider: ProviderReference;
    /**
     * Where a receipt goes.
     */
    receipt_email: string | null;
    /**
     * Your name of what is paid for; only if it has one.
     */
    reference?: string;
    /**
     * The charge of the same reference beside which this one was meant; only if it was.
     */
    duplicate_of?: string;
    /**
     * Whether all of it was given back.
     */
    refunded: boolean;
    refunds?: RefundsOfCharge;
    shipping?: ChargeShipping;
    /**
     * What the statement shows, as it was given; only if it was.
     */
    statement_descriptor?: string;
    /**
     * What the card's statement shows after the operator's name.
     */
    statement_descriptor_suffix: string | null;
    status: ChargeStatus;
};
/**
 * Where and to whom the goods are sent; only if it was given.
 */
export type ChargeShipping = {
    /**
     * Where the goods go.
     */
    address: {
        /**
         * The town or suburb.
         */
        city: string | null;
        /**
         * The two letters of ISO 3166.
         */
        country: string | null;
        /**
         * The street and number.
         */
        line1: string | null;
        /**
         * The floor or flat.
         */
        line2: string | null;
        /**
         * The ZIP.
         */
        postal_code: string | null;
        /**
         * The county, province or region.
         */
        state: string | null;
    };
    /**
     * Who delivers, such as Royal Mail.
     */
    carrier: string | null;
    /**
     * Who receives the goods.
     */
    name: string | null;
    /**
     * The receiver's number.
     */
    phone: string | null;
    /**
     * What the carrier knows it by.
     */
    tracking_number: string | null;
};
/**
 * What the payer has to do before a pending charge can go on. Absent otherwise, and without `STRIPE_FLOW=payment_intents`.
 * Events show only what it is, and so do answers to a read-only API key.
 *
 */
export type NextAction = {
    /**
     * What to do; the member of the same name has the details.
     */
    type: string;
    /**
     * Where the payer can authenticate.
     */
    redirect_to_url?: {
        /**
         * Where to send the payer.
         */
        url: string;
    };
    /**
     * The provider's id of the payment.
     */
    payment_intent?: string;
    /**
     * A secret with which the provider's library in the payer's browser goes on (Stripe.js: `handleNextAction`). Absent
     * where there is an address to send the payer to.
     *
     */
    client_secret?: string;
};
/**
 * The provider's assessment of the payment; null until there is one.
 */
export type ChargeOutcome = {
    /**
     * What the card's network answered.
     */
    network_status: string | null;
    /**
     * Why, when there is a reason.
     */
    reason: string | null;
    /**
     * How risky the provider finds the payment.
     */
    risk_level: string | null;
    /**
     * The assessment in a sentence, for the seller and not for the payer.
     */
    seller_message: string | null;
    /**
     * The assessment in a word: whether the payment was authorised, and who declined it.
     */
    type: string;
} | null;
/**
 * What was paid with; null while it is not known, as of payments that were declined.
 */
export type PaymentMethodDetails = {
    /**
     * The provider's word for the kind of payment method.
     */
    type: string;
    card?: PaymentCard;
} | null;
/**
 * The card, if it is one; null for what the provider did not tell.
 */
export type PaymentCard = {
    /**
     * `visa`, `mastercard`, `amex` and others.
     */
    brand: string | null;
    /**
     * Where it was issued: an ISO 3166 code of two letters.
     */
    country: string | null;
    /**
     * The last month in which it is valid.
     */
    exp_month: number | null;
    /**
     * The year of that month.
     */
    exp_year: number | null;
    /**
     * `credit`, `debit`, `prepaid` or `unknown`.
     */
    funding: string | null;
    /**
     * The last four digits of its number.
     */
    last4: string | null;
    /**
     * The network over which it was charged.
     */
    network: string | null;
    wallet: PaymentWallet;
};
/**
 * The wallet that the card is in; null for one that is in none.
 */
export type PaymentWallet = {
    /**
     * Which wallet it is.
     */
    type: string;
} | null;
/**
 * Where to find the object at the payment provider.
 */
export type ProviderReference = {
    /**
     * Which payment provider it is.
     */
    name: string;
    /**
     * The provider's id; null until the provider is known to have the object.
     */
    id: string | null;
};
/**
 * The newest refunds of the charge, the newest first; only where `expand[]` asks for them.
 */
export type RefundsOfCharge = {
    object: 'list';
    /**
     * Where all of them are listed.
     */
    url: string;
    /**
     * Whether there are more than these.
     */
    has_more: boolean;
    /**
     * The refunds, as `GET /v1/refunds/{id}` shows them.
     */
    data: Array<Refund>;
};
/**
 * A page of charges, the newest first.
 */
export type ChargeList = {
    object: 'list';
    url: '/v1/charges';
    /**
     * Whether there are more, in the direction of paging.
     */
    has_more: boolean;
    /**
     * The charges, as `GET /v1/charges/{id}` shows them.
     */
    data: Array<Charge>;
};
/**
 * What happened.
 */
export type EventType = 'charge.pending' | 'charge.succeeded' | 'charge.failed' | 'charge.captured' | 'charge.canceled' | 'charge.expired' | 'charge.refunded' | 'charge.updated' | 'charge.dispute.created' | 'charge.dispute.updated' | 'charge.dispute.closed' | 'refund.created' | 'refund.updated' | 'refund.failed' | 'radar.early_fraud_warning.created' | 'payment_intent.created' | 'payment_intent.requires_action' | 'payment_intent.processing' | 'payment_intent.payment_failed' | 'payment_intent.amount_capturable_updated' | 'payment_intent.succeeded' | 'payment_intent.canceled';
/**
 * Something that happened. Its bytes never change: every reader, every delivery and every stream gets the same.
 * `docs/events.md` says when each type occurs.
 *
 */
export type Event = {
    /**
     * Dedupe by it: an event is delivered at least once.
     */
    id: string;
    object: 'event';
    /**
     * The version of Stripe's API whose shapes these are.
     */
    api_version: string;
    /**
     * In Unix seconds.
     */
    created: number;
    /**
     * What the event is about.
     */
    data: {
        /**
         * The whole object as `GET` showed it when the event occurred. A charge of `charge.dispute.…` has the `dispute` as well.
         *
         */
        object: Charge | Refund | EarlyFraudWarning | PaymentIntent;
    };
    /**
     * `false`: test money.
     */
    livemode: boolean;
    /**
     * Counts the events of one object, from 1 without gaps: a higher one is newer, whichever arrived first.
     */
    sequence: number;
    type: EventType;
};
/**
 * `asc`: the oldest event first; `desc`: the newest first.
 */
export type EventOrder = 'asc' | 'desc';
/**
 * A page of events, in the requested order.
 */
export type EventList = {
    object: 'list';
    url: '/v1/events';
    /**
     * Whether there are more already.
     */
    has_more: boolean;
    /**
     * The events, each with the bytes that are delivered.
     */
    data: Array<Event>;
};
/**
 * Where to deliver the event again.
 */
export type EventResendParams = {
    /**
     * The id of the one endpoint that gets the event. By default, all that want it.
     */
    webhook_endpoint?: string;
};
/**
 * A repeated delivery of an event.
 */
export type EventResend = {
    object: 'event_resend';
    /**
     * The event that is delivered again.
     */
    event: string;
    /**
     * How many endpoints it is queued for; a disabled one takes none.
     */
    deliveries: number;
};
/**
 * The configuration of an endpoint.
 */
export type WebhookEndpointParams = {
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * The types of events that are sent, or `["*"]` for all, including those of later versions.
     *
     */
    enabled_events?: Array<string>;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * The configuration of an endpoint, as a form.
 */
export type WebhookEndpointForm = {
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * `enabled_events[]=charge.succeeded`, once for each type, or with indices as Stripe's libraries write it: `enabled_events[0]=…`.
     *
     */
    'enabled_events[]'?: Array<string>;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * A new endpoint.
 */
export type WebhookEndpointCreateParams = {
    /**
     * The version of Stripe's API whose shapes events have; there is only this one.
     */
    api_version?: '2023-10-16';
    /**
     * Events of other accounts, which there are not: only `false` is taken.
     */
    connect?: false;
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * The types of events that are sent, or `["*"]` for all, including those of later versions.
     *
     */
    enabled_events?: Array<string>;
    /**
     * Your own pairs of text: up to 50, keys of 1 to 40 characters without square brackets, values of up to 500 characters. A
     * pair whose value is empty is not kept.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * A new endpoint, as a form.
 */
export type WebhookEndpointCreateForm = {
    /**
     * The version of Stripe's API whose shapes events have; there is only this one.
     */
    api_version?: '2023-10-16';
    /**
     * Events of other accounts, which there are not: only `false` is taken.
     */
    connect?: false;
    /**
     * Your text.
     */
    description?: string | null;
    /**
     * `enabled_events[]=charge.succeeded`, once for each type, or with indices as Stripe's libraries write it: `enabled_events[0]=…`.
     *
     */
    'enabled_events[]'?: Array<string>;
    /**
     * Your own pairs of text: up to 50, keys of 1 to 40 characters without square brackets, values of up to 500 characters. A
     * pair whose value is empty is not kept.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url: string;
};
/**
 * What to change of an endpoint; what is left out stays.
 */
export type WebhookEndpointUpdateParams = {
    /**
     * Your text; empty or null for none.
     */
    description?: string | null;
    /**
     * Whether nothing is sent to the endpoint.
     */
    disabled?: boolean;
    /**
     * The types of events that are sent, or `["*"]` for all, including those of later versions.
     *
     */
    enabled_events?: Array<string>;
    /**
     * Pairs to set. One whose value is empty is taken away, and those that are not named stay; an empty text or null instead
     * of the pairs takes all away. An endpoint can have 50.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url?: string;
};
/**
 * What to change of an endpoint; what is left out stays, as a form.
 */
export type WebhookEndpointUpdateForm = {
    /**
     * Your text; empty or null for none.
     */
    description?: string | null;
    /**
     * Whether nothing is sent to the endpoint.
     */
    disabled?: boolean;
    /**
     * `enabled_events[]=charge.succeeded`, once for each type, or with indices as Stripe's libraries write it: `enabled_events[0]=…`.
     *
     */
    'enabled_events[]'?: Array<string>;
    /**
     * Pairs to set. One whose value is empty is taken away, and those that are not named stay; an empty text or null instead
     * of the pairs takes all away. An endpoint can have 50.
     *
     */
    metadata?: {
        [key: string]: string;
    } | null;
    /**
     * Where events are sent by POST: http or https, without user, password or fragment, on the public Internet.
     */
    url?: string;
};
/**
 * Where events of the account are sent.
 */
export type WebhookEndpoint = {
    /**
     * The name that you gave it, or `we_…`.
     */
    id: string;
    object: 'webhook_endpoint';
    /**
     * The version of Stripe's API whose shapes its events have.
     */
    api_version: '2023-10-16';
    /**
     * Always null: only Stripe's Connect has applications.
     */
    application: string | null;
    /**
     * When it was registered for the first time, in Unix seconds.
     */
    created: number;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    /**
     * When it was disabled, in Unix seconds; null while enabled. Registering it again enables it, and so does an update.
     */
    disabled_at: number | null;
    /**
     * Why it was disabled; null while enabled.
     */
    disabled_reason: string | null;
    /**
     * The types of events that are sent, sorted, each once.
     */
    enabled_events: Array<string>;
    /**
     * Whether its events are about real money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    /**
     * The secret with which deliveries are signed. Absent only in answers to a read-only API key.
     */
    secret?: string;
    /**
     * `enabled`: events are sent; `disabled`: queued events wait until it is enabled again.
     */
    status: 'enabled' | 'disabled';
    /**
     * Where events are sent by POST.
     */
    url: string;
};
/**
 * A webhook endpoint after an update, without its secret.
 */
export type WebhookEndpointUpdated = {
    /**
     * The name that you gave it, or `we_…`.
     */
    id: string;
    object: 'webhook_endpoint';
    /**
     * The version of Stripe's API whose shapes its events have.
     */
    api_version: '2023-10-16';
    /**
     * Always null: only Stripe's Connect has applications.
     */
    application: string | null;
    /**
     * When it was registered for the first time, in Unix seconds.
     */
    created: number;
    /**
     * Your text, as it was given.
     */
    description: string | null;
    /**
     * When it was disabled, in Unix seconds; null while enabled. Registering it again enables it, and so does an update.
     */
    disabled_at: number | null;
    /**
     * Why it was disabled; null while enabled.
     */
    disabled_reason: string | null;
    /**
     * The types of events that are sent, sorted, each once.
     */
    enabled_events: Array<string>;
    /**
     * Whether its events are about real money.
     */
    livemode: boolean;
    /**
     * Your own pairs of text.
     */
    metadata: {
        [key: string]: string;
    };
    /**
     * `enabled`: events are sent; `disabled`: queued events wait until it is enabled again.
     */
    status: 'enabled' | 'disabled';
    /**
     * Where events are sent by POST.
     */
    url: string;
};
/**
 * A page of webhook endpoints, the newest first.
 */
export type WebhookEndpointList = {
    object: 'list';
    url: '/v1/webhook_endpoints';
    /**
     * Whether there are more in the direction in which the page was read.
     */
    has_more: boolean;
    /**
     * The endpoints, the newest first.
     */
    data: Array<WebhookEndpoint>;
};
/**
 * Confirms that a webhook endpoint was deleted.
 */
export type DeletedWebhookEndpoint = {
    /**
     * The name that it had.
     */
    id: string;
    object: 'webhook_endpoint';
    /**
     * Always `true`.
     */
    deleted: boolean;
};
/**
 * Bounds on a time in Unix seconds; all that are given apply. In a query, `created=1764403200` stands for exactly that second.
 */
export type TimeRange = {
    /**
     * Later than.
     */
    gt?: number;
    /**
     * At that time or later.
     */
    gte?: number;
    /**
     * Earlier than.
     */
    lt?: number;
    /**
     * At that time or earlier.
     */
    lte?: number;
};
/**
 * An idempotency key and the operation that it stands for.
 */
export type IdempotencyKey = {
    object: 'idempotency_key';
    /**
     * The key of the request, without quotes.
     */
    key: string;
    /**
     * `in_progress`: no outcome is known yet; `completed`: the answer is stored and replayed; `failed`: proven that
     * nothing moved, and the same request under the same key runs again.
     *
     */
    status: 'in_progress' | 'completed' | 'failed';
    /**
     * How far the operation has come, such as `started` or `finished`.
     */
    recovery_point: string;
    /**
     * How many times the operation was driven.
     */
    attempts: number;
    /**
     * The operation, whose id is also in the provider's metadata.
     */
    operation: string;
    /**
     * The object that the operation creates or changes.
     */
    resource: string;
    /**
     * Whether an operator has to decide.
     */
    parked: boolean;
    /**
     * The stored status; null until there is one.
     */
    response_code: number | null;
    /**
     * The `Request-Id` of the request that claimed the key.
     */
    original_request: string;
    /**
     * When the key was claimed, in Unix seconds.
     */
    created: number;
    /**
     * When the key may be used again, in Unix seconds; null while unfinished.
     */
    expires_at: number | null;
};
/**
 * Every answer that is not a success. The section Errors lists all codes.
 */
export type Error = {
    /**
     * What is wrong, in Stripe's shape.
     */
    error: {
        /**
         * The kind of error. `invalid_request_error`: in the request; `card_error`: a declined payment; `idempotency_error`: about
         * the key; `authentication_error`: about the API key; `rate_limit_error`: too many requests; `api_error`: in this server
         * or at the provider.
         *
         */
        type: 'api_error' | 'authentication_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error' | 'rate_limit_error';
        /**
         * For programs; the section Errors lists them.
         */
        code?: string;
        /**
         * For people.
         */
        message: string;
        /**
         * The parameter at fault, such as `metadata[order]`.
         */
        param?: string;
        /**
         * Why the card's issuer declined, when it says.
         */
        decline_code?: string;
        /**
         * The charge that the request is about.
         */
        charge?: string;
        payment_intent?: PaymentIntent;
        /**
         * The `Request-Id` of the request for which the error was created.
         */
        request_id: string;
        /**
         * `retry_same_key`: send the same request again, with the same key; `fix_and_use_new_key`: change the request,
         * and send it under a new key; `use_existing`: what you ask for is there already; `stop`: no retry helps.
         *
         */
        advice: 'retry_same_key' | 'fix_and_use_new_key' | 'use_existing' | 'stop';
    };
};
/**
 * The process, or the whole service, is well.
 */
export type Health = {
    status: 'ok';
};
/**
 * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
 * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
 *
 */
export type KeyHeader = string;
/**
 * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
 * answer. Its form is the same as elsewhere.
 *
 */
export type OptionalKeyHeader = string;
/**
 * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
 * of answering 409 at once. A value that cannot be parsed is ignored.
 *
 */
export type PreferHeader = string;
export type ListChargesData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * The maximum number to return.
         */
        limit?: number;
        /**
         * The id of a charge; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a charge; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * Bounds on the time of creation in Unix seconds, such as `created[gte]=1764403200`; or `created=1764403200`, which is that second.
         */
        created?: TimeRange;
        /**
         * Only charges of this customer of the payment provider.
         */
        customer?: string;
        /**
         * Only charges of this payment intent of the payment provider (`STRIPE_FLOW=payment_intents`).
         */
        payment_intent?: string;
        /**
         * Only charges with this reference.
         */
        reference?: string;
        /**
         * Only charges in this state.
         */
        status?: ChargeStatus;
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<ChargeListExpand>;
    };
    url: '/v1/charges';
};
export type ListChargesErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListChargesError = ListChargesErrors[keyof ListChargesErrors];
export type ListChargesResponses = {
    /**
     * A page of charges.
     */
    200: ChargeList;
};
export type ListChargesResponse = ListChargesResponses[keyof ListChargesResponses];
export type CreateChargeData = {
    body: ChargeParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/charges';
};
export type CreateChargeErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The payment was declined. This is an answer: it is stored and replayed.
     */
    402: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CreateChargeError = CreateChargeErrors[keyof CreateChargeErrors];
export type CreateChargeResponses = {
    /**
     * The charge was created. Its `status` is `succeeded`, or `pending` when the provider reports that.
     */
    201: Charge;
};
export type CreateChargeResponse = CreateChargeResponses[keyof CreateChargeResponses];
export type GetChargeData = {
    body?: never;
    path: {
        /**
         * The charge's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: {
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<ChargeExpand>;
    };
    url: '/v1/charges/{id}';
};
export type GetChargeErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetChargeError = GetChargeErrors[keyof GetChargeErrors];
export type GetChargeResponses = {
    /**
     * The charge.
     */
    200: Charge;
};
export type GetChargeResponse = GetChargeResponses[keyof GetChargeResponses];
export type UpdateChargeData = {
    body: ChargeUpdateParams;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The charge's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/charges/{id}';
};
export type UpdateChargeErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The outcome of the charge is not known yet. Retry the same request.
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type UpdateChargeError = UpdateChargeErrors[keyof UpdateChargeErrors];
export type UpdateChargeResponses = {
    /**
     * The charge as it is now.
     */
    200: Charge;
};
export type UpdateChargeResponse = UpdateChargeResponses[keyof UpdateChargeResponses];
export type CaptureChargeData = {
    body?: CaptureParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The charge's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/charges/{id}/capture';
};
export type CaptureChargeErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CaptureChargeError = CaptureChargeErrors[keyof CaptureChargeErrors];
export type CaptureChargeResponses = {
    /**
     * The charge, captured.
     */
    200: Charge;
};
export type CaptureChargeResponse = CaptureChargeResponses[keyof CaptureChargeResponses];
export type CancelChargeData = {
    body?: never;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The charge's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/charges/{id}/cancel';
};
export type CancelChargeErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CancelChargeError = CancelChargeErrors[keyof CancelChargeErrors];
export type CancelChargeResponses = {
    /**
     * The charge, let go of, or ended.
     */
    200: Charge;
};
export type CancelChargeResponse = CancelChargeResponses[keyof CancelChargeResponses];
export type ListPaymentIntentsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * The maximum number to return.
         */
        limit?: number;
        /**
         * The id of a payment intent; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a payment intent; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * Bounds on the time of creation in Unix seconds, such as `created[gte]=1764403200`; or `created=1764403200`, which is that second.
         */
        created?: TimeRange;
        /**
         * Only payment intents of this customer of the payment provider.
         */
        customer?: string;
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<PaymentIntentListExpand>;
    };
    url: '/v1/payment_intents';
};
export type ListPaymentIntentsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListPaymentIntentsError = ListPaymentIntentsErrors[keyof ListPaymentIntentsErrors];
export type ListPaymentIntentsResponses = {
    /**
     * A page of payment intents.
     */
    200: PaymentIntentList;
};
export type ListPaymentIntentsResponse = ListPaymentIntentsResponses[keyof ListPaymentIntentsResponses];
export type CreatePaymentIntentData = {
    body: PaymentIntentParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/payment_intents';
};
export type CreatePaymentIntentErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The payment was declined. This is an answer: it is stored and replayed.
     */
    402: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CreatePaymentIntentError = CreatePaymentIntentErrors[keyof CreatePaymentIntentErrors];
export type CreatePaymentIntentResponses = {
    /**
     * The payment intent was created, and with `confirm` confirmed.
     */
    201: PaymentIntent | PaymentIntentWithCharge;
};
export type CreatePaymentIntentResponse = CreatePaymentIntentResponses[keyof CreatePaymentIntentResponses];
export type GetPaymentIntentData = {
    body?: never;
    path: {
        /**
         * The payment intent's id, which is the provider's.
         */
        id: string;
    };
    query?: {
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<PaymentIntentExpand>;
    };
    url: '/v1/payment_intents/{id}';
};
export type GetPaymentIntentErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetPaymentIntentError = GetPaymentIntentErrors[keyof GetPaymentIntentErrors];
export type GetPaymentIntentResponses = {
    /**
     * The payment intent.
     */
    200: PaymentIntent | PaymentIntentWithCharge;
};
export type GetPaymentIntentResponse = GetPaymentIntentResponses[keyof GetPaymentIntentResponses];
export type UpdatePaymentIntentData = {
    body: PaymentIntentUpdateParams;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The payment intent's id, which is the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/payment_intents/{id}';
};
export type UpdatePaymentIntentErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type UpdatePaymentIntentError = UpdatePaymentIntentErrors[keyof UpdatePaymentIntentErrors];
export type UpdatePaymentIntentResponses = {
    /**
     * The payment intent as it is now.
     */
    200: PaymentIntent | PaymentIntentWithCharge;
};
export type UpdatePaymentIntentResponse = UpdatePaymentIntentResponses[keyof UpdatePaymentIntentResponses];
export type ConfirmPaymentIntentData = {
    body?: PaymentIntentConfirmParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The payment intent's id, which is the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/payment_intents/{id}/confirm';
};
export type ConfirmPaymentIntentErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The payment was declined. This is an answer: it is stored and replayed.
     */
    402: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type ConfirmPaymentIntentError = ConfirmPaymentIntentErrors[keyof ConfirmPaymentIntentErrors];
export type ConfirmPaymentIntentResponses = {
    /**
     * The payment intent, confirmed.
     */
    200: PaymentIntent | PaymentIntentWithCharge;
};
export type ConfirmPaymentIntentResponse = ConfirmPaymentIntentResponses[keyof ConfirmPaymentIntentResponses];
export type CapturePaymentIntentData = {
    body?: PaymentIntentCaptureParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The payment intent's id, which is the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/payment_intents/{id}/capture';
};
export type CapturePaymentIntentErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CapturePaymentIntentError = CapturePaymentIntentErrors[keyof CapturePaymentIntentErrors];
export type CapturePaymentIntentResponses = {
    /**
     * The payment intent, captured.
     */
    200: PaymentIntent | PaymentIntentWithCharge;
};
export type CapturePaymentIntentResponse = CapturePaymentIntentResponses[keyof CapturePaymentIntentResponses];
export type CancelPaymentIntentData = {
    body?: PaymentIntentCancelParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path: {
        /**
         * The payment intent's id, which is the provider's.
         */
        id: string;
    };
    query?: never;
    url: '/v1/payment_intents/{id}/cancel';
};
export type CancelPaymentIntentErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CancelPaymentIntentError = CancelPaymentIntentErrors[keyof CancelPaymentIntentErrors];
export type CancelPaymentIntentResponses = {
    /**
     * The payment intent, cancelled.
     */
    200: PaymentIntent | PaymentIntentWithCharge;
};
export type CancelPaymentIntentResponse = CancelPaymentIntentResponses[keyof CancelPaymentIntentResponses];
export type ListRefundsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Only refunds of this charge.
         */
        charge?: string;
        /**
         * Only refunds of this payment intent of the payment provider (`STRIPE_FLOW=payment_intents`).
         */
        payment_intent?: string;
        /**
         * Bounds on the time of creation in Unix seconds, such as `created[gte]=1764403200`; or `created=1764403200`, which is that second.
         */
        created?: TimeRange;
        /**
         * The maximum number to return.
         */
        limit?: number;
        /**
         * The id of a refund; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a refund; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<RefundListExpand>;
    };
    url: '/v1/refunds';
};
export type ListRefundsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListRefundsError = ListRefundsErrors[keyof ListRefundsErrors];
export type ListRefundsResponses = {
    /**
     * A page of refunds.
     */
    200: RefundList | RefundListWithCharges;
};
export type ListRefundsResponse = ListRefundsResponses[keyof ListRefundsResponses];
export type CreateRefundData = {
    body: RefundParams;
    headers: {
        /**
         * Names the operation: 1 to 255 printable ASCII characters, case-sensitive, one header line. The quoted form `"abc"` is
         * the same key as `abc`. Use a new random value (such as a UUID) for each payment and the same one for each retry of it.
         *
         */
        'Idempotency-Key': string;
        /**
         * RFC 7240. If the same request is already running, `wait=N` waits up to N seconds (at most 30) for its result instead
         * of answering 409 at once. A value that cannot be parsed is ignored.
         *
         */
        Prefer?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/refunds';
};
export type CreateRefundErrors = {
    /**
     * A parameter, the body or the key header is wrong; the charge or payment intent does not allow the operation in its
     * present state; or the provider refused the request. Only the last is stored under the key.
     *
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The charge or payment intent does not exist, or it belongs to another account. The key is not spent.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The same request is running; or another operation of the charge or payment intent, or another charge with the
     * reference, has no outcome yet (`charge_pending`, `capture_pending`, `cancel_pending`, `refund_pending`,
     * `confirm_pending`, `reference_in_progress`). Retry the same request with the same key.
     *
     */
    409: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server, or the operation needs a decision of the operator (`operation_parked`).
     */
    500: Error;
    /**
     * The outcome is not known yet; nothing could be done at the moment; or it was proven that the provider did nothing
     * (`charge_never_made`, `capture_never_made`, `cancel_never_made`, `refund_never_made`, `intent_never_made`,
     * `confirm_never_made`). Retry the same request with the same key.
     *
     */
    503: Error;
};
export type CreateRefundError = CreateRefundErrors[keyof CreateRefundErrors];
export type CreateRefundResponses = {
    /**
     * The refund was created. Its `status` is `succeeded`, or `pending` while the provider works on it.
     */
    201: Refund | RefundWithCharge;
};
export type CreateRefundResponse = CreateRefundResponses[keyof CreateRefundResponses];
export type GetRefundData = {
    body?: never;
    path: {
        /**
         * The refund's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: {
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<RefundExpand>;
    };
    url: '/v1/refunds/{id}';
};
export type GetRefundErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetRefundError = GetRefundErrors[keyof GetRefundErrors];
export type GetRefundResponses = {
    /**
     * The refund.
     */
    200: Refund | RefundWithCharge;
};
export type GetRefundResponse = GetRefundResponses[keyof GetRefundResponses];
export type ListDisputesData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Only disputes of this charge, by Paidonce's id or the provider's.
         */
        charge?: string;
        /**
         * The maximum number to return.
         */
        limit?: number;
        /**
         * The id of a dispute; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of a dispute; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * Bounds on the time of creation in Unix seconds, such as `created[gte]=1764403200`; or `created=1764403200`, which is that second.
         */
        created?: TimeRange;
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<DisputeListExpand>;
    };
    url: '/v1/disputes';
};
export type ListDisputesErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListDisputesError = ListDisputesErrors[keyof ListDisputesErrors];
export type ListDisputesResponses = {
    /**
     * A page of disputes.
     */
    200: DisputeList | DisputeListWithCharges;
};
export type ListDisputesResponse = ListDisputesResponses[keyof ListDisputesResponses];
export type GetDisputeData = {
    body?: never;
    path: {
        /**
         * The dispute's id: Paidonce's, or the provider's.
         */
        id: string;
    };
    query?: {
        /**
         * What the answer shows in full. Instead of `expand[]=…`, `expand[0]=…` works as well, as Stripe's libraries write it.
         */
        'expand[]'?: Array<DisputeExpand>;
    };
    url: '/v1/disputes/{id}';
};
export type GetDisputeErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetDisputeError = GetDisputeErrors[keyof GetDisputeErrors];
export type GetDisputeResponses = {
    /**
     * The dispute.
     */
    200: Dispute | DisputeWithCharge;
};
export type GetDisputeResponse = GetDisputeResponses[keyof GetDisputeResponses];
export type ListEventsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * Only events of this type, or of all types that match, such as `charge.*`.
         */
        type?: string;
        /**
         * Only events of these types, at most 20, which may have `*` as well; not together with `type`. Instead of `types[]=…`, `types[0]=…` works as well, as
         * Stripe's libraries write it.
         *
         */
        'types[]'?: Array<string>;
        /**
         * Bounds on the event's `created` in Unix seconds, such as `created[gte]=1764403200`; or `created=1764403200`, which is that second.
         */
        created?: TimeRange;
        /**
         * The id of an event, of any type; the page begins with the next one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of an event, of any type; the page ends with the one before it. Not together with `starting_after`.
         */
        ending_before?: string;
        /**
         * `desc` returns the newest first: `order=desc&limit=1` is the last event. Read later events from there on, in the
         * default order.
         *
         */
        order?: EventOrder;
        /**
         * The maximum number to return.
         */
        limit?: number;
    };
    url: '/v1/events';
};
export type ListEventsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListEventsError = ListEventsErrors[keyof ListEventsErrors];
export type ListEventsResponses = {
    /**
     * A page of events. Each has the bytes that are delivered.
     */
    200: EventList;
};
export type ListEventsResponse = ListEventsResponses[keyof ListEventsResponses];
export type GetEventData = {
    body?: never;
    path: {
        /**
         * The event's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/events/{id}';
};
export type GetEventErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetEventError = GetEventErrors[keyof GetEventErrors];
export type GetEventResponses = {
    /**
     * The event.
     */
    200: Event;
};
export type GetEventResponse = GetEventResponses[keyof GetEventResponses];
export type ResendEventData = {
    body?: EventResendParams;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The event's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/events/{id}/resend';
};
export type ResendEventErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has the maximum number of endpoints.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ResendEventError = ResendEventErrors[keyof ResendEventErrors];
export type ResendEventResponses = {
    /**
     * It is queued.
     */
    200: EventResend;
};
export type ResendEventResponse = ResendEventResponses[keyof ResendEventResponses];
export type ListWebhookEndpointsData = {
    body?: never;
    path?: never;
    query?: {
        /**
         * The maximum number to return.
         */
        limit?: number;
        /**
         * The id of an endpoint; the page begins with the next older one. Not together with `ending_before`.
         */
        starting_after?: string;
        /**
         * The id of an endpoint; the page ends with the next newer one. Not together with `starting_after`.
         */
        ending_before?: string;
    };
    url: '/v1/webhook_endpoints';
};
export type ListWebhookEndpointsErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ListWebhookEndpointsError = ListWebhookEndpointsErrors[keyof ListWebhookEndpointsErrors];
export type ListWebhookEndpointsResponses = {
    /**
     * The endpoints.
     */
    200: WebhookEndpointList;
};
export type ListWebhookEndpointsResponse = ListWebhookEndpointsResponses[keyof ListWebhookEndpointsResponses];
export type CreateWebhookEndpointData = {
    body: WebhookEndpointCreateParams;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path?: never;
    query?: never;
    url: '/v1/webhook_endpoints';
};
export type CreateWebhookEndpointErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has the maximum number of endpoints.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type CreateWebhookEndpointError = CreateWebhookEndpointErrors[keyof CreateWebhookEndpointErrors];
export type CreateWebhookEndpointResponses = {
    /**
     * The endpoint, with its secret.
     */
    201: WebhookEndpoint;
};
export type CreateWebhookEndpointResponse = CreateWebhookEndpointResponses[keyof CreateWebhookEndpointResponses];
export type DeleteWebhookEndpointData = {
    body?: never;
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type DeleteWebhookEndpointErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type DeleteWebhookEndpointError = DeleteWebhookEndpointErrors[keyof DeleteWebhookEndpointErrors];
export type DeleteWebhookEndpointResponses = {
    /**
     * It is deleted.
     */
    200: DeletedWebhookEndpoint;
};
export type DeleteWebhookEndpointResponse = DeleteWebhookEndpointResponses[keyof DeleteWebhookEndpointResponses];
export type GetWebhookEndpointData = {
    body?: never;
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type GetWebhookEndpointErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetWebhookEndpointError = GetWebhookEndpointErrors[keyof GetWebhookEndpointErrors];
export type GetWebhookEndpointResponses = {
    /**
     * The endpoint.
     */
    200: WebhookEndpoint;
};
export type GetWebhookEndpointResponse = GetWebhookEndpointResponses[keyof GetWebhookEndpointResponses];
export type UpdateWebhookEndpointData = {
    body?: WebhookEndpointUpdateParams;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type UpdateWebhookEndpointErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has the maximum number of endpoints.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type UpdateWebhookEndpointError = UpdateWebhookEndpointErrors[keyof UpdateWebhookEndpointErrors];
export type UpdateWebhookEndpointResponses = {
    /**
     * The endpoint as it is now, without its secret.
     */
    200: WebhookEndpointUpdated;
};
export type UpdateWebhookEndpointResponse = UpdateWebhookEndpointResponses[keyof UpdateWebhookEndpointResponses];
export type PutWebhookEndpointData = {
    body: WebhookEndpointParams;
    path: {
        /**
         * Your name for the endpoint: letters, digits, dots, dashes and underscores, a letter or a digit first.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}';
};
export type PutWebhookEndpointErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has the maximum number of endpoints.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type PutWebhookEndpointError = PutWebhookEndpointErrors[keyof PutWebhookEndpointErrors];
export type PutWebhookEndpointResponses = {
    /**
     * The endpoint, as it is now; it was registered before.
     */
    200: WebhookEndpoint;
    /**
     * The endpoint is new.
     */
    201: WebhookEndpoint;
};
export type PutWebhookEndpointResponse = PutWebhookEndpointResponses[keyof PutWebhookEndpointResponses];
export type RotateWebhookEndpointSecretData = {
    body?: never;
    headers?: {
        /**
         * Optional here. With a key, the work is done once for it, and every request of the same key and content gets the first
         * answer. Its form is the same as elsewhere.
         *
         */
        'Idempotency-Key'?: string;
    };
    path: {
        /**
         * The endpoint's id.
         */
        id: string;
    };
    query?: never;
    url: '/v1/webhook_endpoints/{id}/rotate_secret';
};
export type RotateWebhookEndpointSecretErrors = {
    /**
     * A parameter, the body, or the `Idempotency-Key` is wrong; or the account has the maximum number of endpoints.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The API key may only read. Nothing was done, and no idempotency key is spent.
     */
    403: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * The body is neither JSON nor a form, is not UTF-8, or is compressed.
     */
    415: Error;
    /**
     * The key stands for another request.
     */
    422: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type RotateWebhookEndpointSecretError = RotateWebhookEndpointSecretErrors[keyof RotateWebhookEndpointSecretErrors];
export type RotateWebhookEndpointSecretResponses = {
    /**
     * The endpoint, with the new secret.
     */
    200: WebhookEndpoint;
};
export type RotateWebhookEndpointSecretResponse = RotateWebhookEndpointSecretResponses[keyof RotateWebhookEndpointSecretResponses];
export type ReceiveStripeEventData = {
    body: StripeEvent;
    headers: {
        /**
         * Stripe's signature of the body, one header line.
         */
        'Stripe-Signature': string;
    };
    path?: never;
    query?: never;
    url: '/v1/provider/stripe/webhooks';
};
export type ReceiveStripeEventErrors = {
    /**
     * The signature does not match, or no secret is configured. Nothing is stored.
     */
    400: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * The body took too long to arrive.
     */
    408: Error;
    /**
     * The body is larger than this installation allows (1 MiB unless configured otherwise).
     */
    413: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type ReceiveStripeEventError = ReceiveStripeEventErrors[keyof ReceiveStripeEventErrors];
export type ReceiveStripeEventResponses = {
    /**
     * The event is stored, now or before.
     */
    200: Received;
};
export type ReceiveStripeEventResponse = ReceiveStripeEventResponses[keyof ReceiveStripeEventResponses];
export type GetIdempotencyKeyData = {
    body?: never;
    path: {
        /**
         * The key as it was sent in `Idempotency-Key`, percent-encoded where needed (`/` is `%2F`). A key that was sent in
         * quotes, as a structured field, is found with them (`%22…%22`) and without.
         *
         */
        key: string;
    };
    query?: never;
    url: '/v1/idempotency_keys/{key}';
};
export type GetIdempotencyKeyErrors = {
    /**
     * A query parameter is wrong, or a header names another account.
     */
    400: Error;
    /**
     * There is no API key, or it is not valid.
     */
    401: Error;
    /**
     * The object does not exist, or it belongs to another account.
     */
    404: Error;
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * Too many requests of this account.
     */
    429: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetIdempotencyKeyError = GetIdempotencyKeyErrors[keyof GetIdempotencyKeyErrors];
export type GetIdempotencyKeyResponses = {
    /**
     * The key.
     */
    200: IdempotencyKey;
};
export type GetIdempotencyKeyResponse = GetIdempotencyKeyResponses[keyof GetIdempotencyKeyResponses];
export type GetHealthData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/healthz';
};
export type GetHealthErrors = {
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * A fault of this server.
     */
    500: Error;
};
export type GetHealthError = GetHealthErrors[keyof GetHealthErrors];
export type GetHealthResponses = {
    /**
     * It does, or they should.
     */
    200: Health;
};
export type GetHealthResponse = GetHealthResponses[keyof GetHealthResponses];
export type GetReadinessData = {
    body?: never;
    path?: never;
    query?: never;
    url: '/readyz';
};
export type GetReadinessErrors = {
    /**
     * The path does not support the method.
     */
    405: Error;
    /**
     * A fault of this server.
     */
    500: Error;
    /**
     * The database is not reachable, or the process is shutting down.
     */
    503: Error;
};
export type GetReadinessError = GetReadinessErrors[keyof GetReadinessErrors];
export type GetReadinessResponses = {
    /**
     * It does, or they should.
     */
    200: Health;
};
export type GetReadinessResponse = GetReadinessResponses[keyof GetReadinessResponses];
