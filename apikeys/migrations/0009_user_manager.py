from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("apikeys", "0008_maker")]

    operations = [migrations.AlterModelManagers(name="user", managers=[])]
