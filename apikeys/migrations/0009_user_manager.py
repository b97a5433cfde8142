from django.db import migrations


class Migration(migrations.Migration):
    safe_while_running = True

    dependencies = [("apikeys", "0008_maker")]

    operations = [migrations.AlterModelManagers(name="user", managers=[])]
