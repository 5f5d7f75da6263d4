/* SPDX-License-Identifier: Apache-2.0 */
/* The image without a policy: what start-up alone takes. */
int main(void);

int main(void)
{
    return 0;
}
